"""Grids: ghost layers, sums and transforms, blocks over devices."""
