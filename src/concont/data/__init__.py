"""From files to batches: sources, candidate sets, order."""
