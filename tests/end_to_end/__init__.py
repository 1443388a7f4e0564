"""Real processes on real files: what happens when they are killed, stopped and asked to leave."""
