"""`physkit sweep`: its actions."""
