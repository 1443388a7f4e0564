"""KEEP: the only code that does I/O. Stores hold facts and apply decisions; they make none."""
