"""boundaries."""
