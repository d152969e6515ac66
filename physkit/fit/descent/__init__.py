"""What a descent sees and where it is kept: batches of the data, and its file."""
