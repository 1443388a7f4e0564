import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/drumline"
APP = """
from drumline import Drumline

drum = Drumline()


@drum.task
def greet(name: str) -> str:
    return f"hello {name}"
"""

# A bare environment is filled from the package index, which may be slow.
pytestmark = pytest.mark.timeout(300)


def environment() -> dict[str, str]:
    """Leave out what would let the checkout or the caller's settings show through."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("DRUMLINE_", "PYTHON"))}


def run(*words: str | Path, cwd: Path) -> str:
    result = subprocess.run(words, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment that holds the wheel and its pinned dependencies, and no checkout."""
    folder = tmp_path_factory.mktemp("bare")
    run(sys.executable, "-m", "venv", "venv", cwd=folder)
    pip = (folder / "venv/bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    run(*pip, "--require-hashes", "-r", ROOT / "requirements/run.txt", cwd=folder)
    run(*pip, "--no-deps", wheel, cwd=folder)
    return folder / "venv/bin"


def wait_until_done(drumline: Path, job_id: str, worker: subprocess.Popen[str], folder: Path) -> None:
    # No pause is needed: each look is a whole process.
    while worker.poll() is None:
        job = json.loads(run(drumline, "jobs", "show", job_id, "--app", "app:drum", "--json", cwd=folder))
        if job["state"] == "done":
            return
    pytest.fail(f"the worker ended with {worker.returncode} before the job was done")


def test_the_wheel_holds_every_file_of_the_package(wheel):
    files = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "drumline/py.typed" in files
    assert files - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_installed_wheel_has_all_it_requires(bin_folder, tmp_path):
    assert "No broken requirements found" in run(bin_folder / "python", "-m", "pip", "check", cwd=tmp_path)


def test_the_installed_command_says_its_version(bin_folder, tmp_path):
    assert "0.1.0" in run(bin_folder / "drumline", "--version", cwd=tmp_path)


def test_the_installed_command_helps(bin_folder, tmp_path):
    assert "enqueue" in run(bin_folder / "drumline", "--help", cwd=tmp_path)


def test_a_job_is_done_on_a_sqlite_file_in_an_empty_folder(bin_folder, tmp_path):
    (tmp_path / "app.py").write_text(APP)
    drumline = bin_folder / "drumline"
    answer = run(drumline, "enqueue", "greet", '{"name": "Ada"}', "--app", "app:drum", "--json", cwd=tmp_path)
    job = json.loads(answer)
    assert (job["task"], job["queue"], job["state"]) == ("greet", "default", "ready")

    with subprocess.Popen([drumline, "run", "app:drum"], cwd=tmp_path, env=environment(), text=True) as worker:
        try:
            wait_until_done(drumline, job["id"], worker, tmp_path)
        finally:
            worker.terminate()
    assert worker.returncode == 0
    assert (tmp_path / "drumline.db").exists()
