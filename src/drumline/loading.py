"""Importing a module that somebody has named: what is wrong with it is told in a sentence, with its place."""

from __future__ import annotations

import importlib
import traceback
from types import ModuleType

from drumline.errors import BadSettings, DrumlineError

__all__ = ["load_module"]


def load_module(module_name: str, which: str) -> ModuleType:
    """The module; BadSettings if it cannot be had. `which`: what named it, for the sentence."""
    try:
        return importlib.import_module(module_name)
    except DrumlineError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise BadSettings(f"{which}: {_blame(error)}") from error
        raise BadSettings(f"{which}: there is no module {error.name}, here or installed") from error
    except Exception as error:
        raise BadSettings(f"{which}: {_blame(error)}") from error


def _blame(error: Exception) -> str:
    """What went wrong inside the module's own code, and where."""
    reason = traceback.format_exception_only(error)[-1].strip()
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {reason}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno}: {reason}"
