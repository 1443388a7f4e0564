"""A shop whose orders and jobs are in one Postgres, and in one transaction."""
