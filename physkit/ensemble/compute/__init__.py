"""The chunks of a sweep computed in this process."""
