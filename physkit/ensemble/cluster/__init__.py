"""Many processes that share a sweep: workers, their claims on chunks, Slurm."""
