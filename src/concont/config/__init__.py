"""From recipes, files and flags to complete settings."""
