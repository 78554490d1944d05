"""Runs as a page to look at, written to a file or served while they train."""
