"""The child's side: one trial in one fresh process, from its settings to its record."""
