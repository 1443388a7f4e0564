"""Chaos: a fleet of real processes, killed, frozen and cut off at random, and a check of what the store says then."""
