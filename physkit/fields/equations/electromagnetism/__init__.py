"""Maxwell's equations on Yee's grid: media, sources, and the equation itself."""
