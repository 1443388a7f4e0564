"""The API under the dashboard's prefix: what the dashboard and other programs ask and do."""
