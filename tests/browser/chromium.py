"""Finds a Chromium on this machine, or installs one where that is possible."""

import fcntl
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
# The language of a machine without any is one that no page knows.
LANGUAGE = {"LANG": "en_US.UTF-8", "LC_ALL": "en_US.UTF-8"}
MISSING = f"no Chromium: set {VARIABLE}, or install the package chromium, or npm"
# A package that carries the program itself, and where it is kept once it was unpacked.
PACKAGE = "@sparticuz/chromium"
FOLDER = Path(__file__).parents[2] / ".browser"


@cache
def find_chromium() -> str | None:
    """The program, or None."""
    named = os.environ.get(VARIABLE)
    if named:
        return named if Path(named).exists() else None
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or _own_of_playwright() or _install_debian() or _install_npm()


def _own_of_playwright() -> str | None:
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache/ms-playwright"))
    return next((str(path) for path in sorted(folder.glob("chromium-*/chrome-linux*/chrome"), reverse=True)), None)


def _install_debian() -> str | None:
    """Debian's package, where this process may install one."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update",), ("install", "-y", "--no-install-recommends", "chromium")):
        done = subprocess.run(["apt-get", "-qq", *words], env=quiet, capture_output=True, check=False)
        if done.returncode != 0:
            return None
    return shutil.which("chromium")


def _install_npm() -> str | None:
    """A package of npm, for whoever may not install anything on the machine."""
    npm, node, program = shutil.which("npm"), shutil.which("node"), FOLDER / "chromium"
    if npm is None or node is None:
        return None
    FOLDER.mkdir(exist_ok=True)
    # One of two who come here at once does it; the other finds it done.
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            unpack = f'import("{PACKAGE}").then(found => found.default.executablePath())'
            for words in (
                [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(FOLDER), PACKAGE],
                [node, "--input-type=module", "-e", unpack],
            ):
                # It unpacks where temporary files are kept.
                quiet = {**os.environ, "TMPDIR": str(FOLDER)}
                if subprocess.run(words, cwd=FOLDER, env=quiet, capture_output=True, check=False).returncode != 0:
                    return None
    return str(program) if program.exists() else None
