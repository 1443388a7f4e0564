"""Finds a Chromium on this machine, or installs one where that is possible."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

# The path of one, for whoever has it elsewhere.
VARIABLE = "CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING = f"no Chromium: set {VARIABLE}, or install the package chromium"


@cache
def find_chromium() -> str | None:
    """The program, or None."""
    named = os.environ.get(VARIABLE)
    if named:
        return named if Path(named).exists() else None
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or _own_of_playwright() or _install()


def _own_of_playwright() -> str | None:
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache/ms-playwright"))
    return next((str(path) for path in sorted(folder.glob("chromium-*/chrome-linux*/chrome"), reverse=True)), None)


def _install() -> str | None:
    """Debian's package, where this process may install one."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update",), ("install", "-y", "--no-install-recommends", "chromium")):
        done = subprocess.run(["apt-get", "-qq", *words], env=quiet, capture_output=True, check=False)
        if done.returncode != 0:
            return None
    return shutil.which("chromium")
