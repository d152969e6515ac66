"""A simulation over a grid of devices: sharding, migration, gathering, capacities."""
