"""What compiled programs are made of: loops of unknown length, several arrays as one, and what is no array."""
