import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

CONFTEST = """
import pytest
from app import drum

@pytest.fixture
def drumline_app():
    return drum
"""

APP = """
import asyncio
from contextlib import asynccontextmanager
from drumline import Context, Drumline

@asynccontextmanager
async def lifespan():
    yield "pool"

drum = Drumline("sqlite:///production.db", lifespan=lifespan)

@drum.task
async def greet(ctx: Context, name: str) -> str:
    return f"hello {name} from the {ctx.state}"
"""

TESTS = """
import pytest
from app import greet

def test_sync(drumline_harness):
    greet.using(delay="1h").enqueue_sync(name="Ada")
    assert drumline_harness.advance("1h")[0].result == "hello Ada from the pool"

@pytest.mark.asyncio
async def test_async(drumline_harness):
    await greet.using(delay="1h").enqueue(name="Ada")
    assert (await drumline_harness.advance("1h"))[0].result == "hello Ada from the pool"

@pytest.mark.asyncio
async def test_each_has_its_own(drumline_harness):
    assert drumline_harness.jobs == []
"""


def run_pytest(folder: Path, **files: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    plugins = ("-p", "drumline.testing.plugin", "-p", "pytest_asyncio.plugin")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *plugins],
        cwd=folder,
        # By name, so that the fixtures are those of this checkout, whatever is installed.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_fixture_gives_each_test_a_harness_of_its_colour(tmp_path):
    result = run_pytest(tmp_path, conftest=CONFTEST, app=APP, test_app=TESTS)
    assert "3 passed" in result.stdout, result.stdout + result.stderr
    assert not (tmp_path / "production.db").exists()


def test_a_suite_without_an_app_is_told_what_to_define(tmp_path):
    result = run_pytest(tmp_path, test_app="def test_sync(drumline_harness): ...")
    assert "define a fixture drumline_app that returns your Drumline" in result.stdout


def test_pytest_finds_the_fixtures_by_an_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plugin = importlib.import_module(project["entry-points"]["pytest11"]["drumline"])
    assert {"drumline_app", "drumline_harness"} <= vars(plugin).keys()


def test_the_kit_does_not_need_pytest():
    code = "import sys; sys.modules['pytest'] = None; from drumline import testing; testing.app()"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
