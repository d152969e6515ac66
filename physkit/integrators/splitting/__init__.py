"""splitting."""
