"""reaction."""
