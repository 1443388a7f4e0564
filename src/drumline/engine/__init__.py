"""RUN: loops that carry values from store to function and back."""
