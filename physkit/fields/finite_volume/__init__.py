"""finite_volume."""
