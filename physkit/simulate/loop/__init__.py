"""What is traced for one device: the simulation, its carry, the nested loop, and chunks as one program."""
