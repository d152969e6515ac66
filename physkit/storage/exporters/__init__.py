"""Exports of recorded frames to files of other programs: XYZ, VTK, NumPy."""
