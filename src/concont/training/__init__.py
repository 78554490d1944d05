"""Training: one loop for every method, its checkpoints, its run folder."""
