"""Tests of the chaos harness, and crashes at every named place."""
