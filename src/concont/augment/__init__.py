"""Random views, batched on the training device."""
