"""What calls are given: converted at the entry, and explained where it does not fit."""
