"""Forces of whole neighborhoods: energies that are not sums over pairs."""
