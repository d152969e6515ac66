"""Searches without derivatives, whose populations are computed as the members of a sweep are."""
