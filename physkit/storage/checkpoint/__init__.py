"""Checkpoints: a carry on disk, in one file per process, and how it is read back."""
