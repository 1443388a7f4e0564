"""The demonstration: a small shop that has background work of every kind, and a stage that shows it at work."""
