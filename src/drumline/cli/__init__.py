"""The command line: one module for each group of commands.

Help must come at once, so a command imports what it works with when it is called, not when its module is.
"""

from drumline.cli.root import main

__all__ = ["main"]
