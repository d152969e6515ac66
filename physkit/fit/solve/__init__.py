"""From an objective to a minimum: bounds, coordinates, methods, restarts, and the result."""
