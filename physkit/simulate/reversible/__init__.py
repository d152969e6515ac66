"""reversible."""
