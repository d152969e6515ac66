"""Published numbers of fits, inverse problems and ensembles."""
