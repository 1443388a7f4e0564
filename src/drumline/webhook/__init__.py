"""Alerts to an address of yours, signed; and how the one who receives them checks that."""
