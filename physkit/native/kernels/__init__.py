"""Kernels for NVIDIA's GPUs, which Triton compiles."""
