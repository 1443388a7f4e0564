"""One virtual environment for each peer, made when it is first needed and again when its pins change."""

import subprocess
import sys
from pathlib import Path

from benchmarks.peers.systems import ENVIRONMENTS, HARNESS, LOOKING, System

FOLDER = Path(".bench-envs")


def interpreter(system: System) -> str:
    """The Python that runs the system, with everything it needs installed."""
    if system.environment is None:
        return sys.executable
    folder = FOLDER.absolute() / system.environment
    python = folder / "bin" / "python"
    pins = "\n".join((*HARNESS, *ENVIRONMENTS[system.environment], *LOOKING.get(system.environment, ())))
    stamp = folder / "pins.txt"
    if stamp.exists() and stamp.read_text() == pins:
        return str(python)
    print(f"making the environment of {system.environment}", flush=True)
    stamp.unlink(missing_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*pip, *pins.split("\n")], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    stamp.write_text(pins)
    return str(python)
