"""Sound in fluids: k-space steps, absorption, sources."""
