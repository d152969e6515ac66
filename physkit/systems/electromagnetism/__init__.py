"""Light and radio waves: cavities, slabs, antennas."""
