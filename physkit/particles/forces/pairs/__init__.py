"""Forces between pairs: kernels, truncations, the sums over pairs and their derivatives."""
