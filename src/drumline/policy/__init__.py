"""DECIDE: pure functions from values to values."""
