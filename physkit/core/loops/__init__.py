"""Loops of unknown length with derivatives of every order, and several arrays as one, as loops keep them."""
