"""What a script gets its settings from."""
