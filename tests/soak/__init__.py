"""A steady load for many minutes, under which nothing may grow."""
