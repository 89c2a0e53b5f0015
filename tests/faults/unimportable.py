"""A user's module with a mistake: an exception of its own at import."""

raise RuntimeError("planted failure at import")
