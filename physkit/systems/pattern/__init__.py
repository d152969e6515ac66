"""Patterns: phases that part, and waves of a length of their own."""
