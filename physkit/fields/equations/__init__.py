"""Partial differential equations, one a file."""

from ._diffusion import Diffusion as Diffusion, per_component as per_component
