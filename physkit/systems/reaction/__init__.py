"""Reaction and diffusion: spots and fronts."""
