"""WHAT: frozen values that know nothing of I/O, clocks or policy."""
