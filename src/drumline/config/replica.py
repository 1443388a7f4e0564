"""How a replica is called."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping

from drumline.config.sections import Settings

__all__ = ["replica_name"]

# Where platforms put the name of the machine or container, the most specific first.
_PLATFORMS = ("FLY_MACHINE_ID", "RAILWAY_REPLICA_ID", "RENDER_INSTANCE_ID", "DYNO", "CF_INSTANCE_GUID", "HOSTNAME")
_LONGEST = 60


def replica_name(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    hostname: Callable[[], str] = socket.gethostname,
    pid: Callable[[], int] = os.getpid,
) -> str:
    """This process's name in the fleet: as set, else as the platform or the host is called, else by its pid."""
    candidates = (settings.scheduler.replica_id, *(environ.get(name) for name in _PLATFORMS), hostname())
    for candidate in candidates:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", candidate or "").strip("-.")
        # Every container of some platforms is called that.
        if name and name != "localhost":
            return _shorten(name)
    return f"pid-{pid()}"


def _shorten(name: str) -> str:
    """Both ends are kept: pods differ in the last characters, hosts with a domain in the first."""
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[: half - 1]}-{name[-half:]}"
