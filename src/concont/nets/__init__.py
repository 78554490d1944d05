"""Backbones and heads."""
