"""bonded."""
