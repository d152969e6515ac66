"""What a sweep keeps: chunks in a folder or in memory, and the ensemble that they make."""
