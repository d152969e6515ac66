"""Published numbers of what is drawn at random."""
