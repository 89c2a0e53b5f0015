"""A package as a user of the runner might have one: find bright spots in pictures, and count them."""
