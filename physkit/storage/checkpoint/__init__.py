"""Checkpoints: a carry written to disk, in one file per process, and read back exactly."""
