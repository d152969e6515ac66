"""Forces between bonded particles: bonds, angles, and tuples of particles over devices."""
