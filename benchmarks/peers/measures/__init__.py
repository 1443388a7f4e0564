"""What is measured, one module for each part: `measure(adapter, amount)` on an empty store, under the system's Python.

What the amount counts is told by each.
"""
