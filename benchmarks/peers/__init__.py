"""Drumline beside other job systems for Python: one harness, one no-op job, each system in its own environment."""
