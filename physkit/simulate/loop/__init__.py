"""What one device does: the simulation, its carry, the nested loop, and chunks as one program."""
