"""From image files to pixels in a mapped cache."""
