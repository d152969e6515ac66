"""What functions of users read from outside themselves, and whether it has changed."""
