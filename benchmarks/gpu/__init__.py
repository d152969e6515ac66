"""What systems cost on a GPU, found without one: `python -m benchmarks.gpu`."""
