"""Solids in flows, and shapes of media: where they are, by a signed distance."""
