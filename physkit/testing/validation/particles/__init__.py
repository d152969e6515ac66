"""Published numbers of particles: liquids, orbits, plasmas, thermostats."""
