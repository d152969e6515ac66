"""particle."""
