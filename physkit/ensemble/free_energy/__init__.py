"""Free energies from the frames of sweeps, replica exchanges and runs."""
