"""Makes the site of docs/, README and examples: `make docs`."""
