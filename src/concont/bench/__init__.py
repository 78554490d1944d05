"""Measures the step against the plain way and against the machine."""
