"""Fourier, cosine and sine transforms, on one device and over many."""
