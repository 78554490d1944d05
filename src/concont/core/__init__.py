"""What a step computes: losses, the controller, its thresholds, contrast and memory."""
