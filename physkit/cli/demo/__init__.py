"""`physkit demo`: its chapters, each with its pictures."""
