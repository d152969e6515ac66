"""Reports about a simulation: what it needs, costs and sends, and where it went wrong."""
