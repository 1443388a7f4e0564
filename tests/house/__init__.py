"""The rules of the house, as tests."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
