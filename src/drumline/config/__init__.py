"""Settings: what can be set, where each value came from, and what is said of one that is wrong.

This package loads pydantic, which takes a while: import it where settings are needed, not at the top of a module.
"""

from drumline.config.load import Configuration, load_settings
from drumline.config.replica import replica_name
from drumline.config.sections import Settings

__all__ = ["Configuration", "Settings", "load_settings", "replica_name"]
