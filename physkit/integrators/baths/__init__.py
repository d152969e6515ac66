"""Heat baths and barostats around any integrator of particles."""
