"""Recordings: the files that a run's frames are appended to, and how they are read."""
