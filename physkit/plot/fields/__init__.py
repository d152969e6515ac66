"""Pictures of fields: curves, maps, arrows, spectra, globes."""
