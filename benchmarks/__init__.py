"""Speeds of Drumline beside those of the bare engine, in one run on one machine."""
