"""Members of a sweep that exchange their states."""
