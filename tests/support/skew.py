"""A wrong clock for a program of its own: libfaketime shifts the time that it reads, and no other clock."""

import sysconfig
from datetime import timedelta
from pathlib import Path

from tests.support.require import give_up

# For programs with threads, whose waiting must not be shifted too.
_LIBRARY = "faketime/libfaketimeMT.so.1"


def skewed(skew: timedelta) -> dict[str, str]:
    """The variables under which a program's clock is off by so much; how fast it goes, and what waits, is true."""
    if not skew:
        return {}
    return {
        "LD_PRELOAD": str(_find_library()),
        "FAKETIME": f"{skew.total_seconds():+g}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # Children of the program share its clock.
        "FAKETIME_DONT_RESET": "1",
    }


def _find_library() -> Path:
    folders = (sysconfig.get_config_var("LIBDIR"), "/usr/lib", "/usr/lib64", "/usr/local/lib")
    architecture = sysconfig.get_config_var("MULTIARCH") or ""
    places = (Path(folder, part, _LIBRARY) for folder in folders for part in (architecture, "") if folder)
    found = next((place for place in places if place.exists()), None)
    if found is None:
        give_up("libfaketime is not installed")
    return found
