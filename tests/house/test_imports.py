from pathlib import Path

import pytest

from tests.house import ROOT
from tests.house.imports import find_leaks, find_wrong_imports


def write_package(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "drumline"
    for name, text in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


def test_imports_of_the_package_point_one_way():
    assert find_wrong_imports(ROOT / "src/drumline") == []


def test_the_front_file_holds_the_public_names_and_nothing_else():
    assert find_leaks(ROOT / "src/drumline/__init__.py") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("errors.py", "import drumline.clock"),
        ("events.py", "from drumline.model import job"),
        ("policy/retry.py", "from drumline.stores.base import Store"),
        ("engine/run.py", "from drumline import app"),
        ("client.py", "from drumline import Drumline"),
        ("config.py", "from .app import Drumline"),
        ("stores/files.py", "from ..engine import run"),
        ("web/api.py", "import drumline.cli.main"),
        ("__init__.py", "from drumline.web import install"),
    ],
)
def test_an_import_of_a_later_module_is_wrong(tmp_path, name, text):
    assert find_wrong_imports(write_package(tmp_path, {name: text, "app.py": "", "engine/run.py": text}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("clock.py", "from drumline.errors import DrumlineError"),
        ("model/job.py", "from drumline.model.claim import Claim\nimport msgspec"),
        ("policy/due.py", "import random\nfrom datetime import datetime"),
        ("app.py", "from drumline.config import Settings\nfrom drumline.stores.open import open_store"),
        ("testing.py", "from drumline.stores.memory import MemoryStore"),
        ("stores/open.py", "def open_store():\n    from drumline.stores.redis.connect import connect"),
        ("stores/sqlite/connect.py", "from drumline.stores.sqlite import operations\nfrom drumline.stores import base"),
        ("cli/doctor.py", "from drumline import Drumline\nfrom drumline.stores.sqlite import connect"),
        ("__init__.py", "from drumline.app import Drumline"),
    ],
)
def test_an_import_of_an_earlier_module_is_right(tmp_path, name, text):
    others = {"stores/base.py": "", "stores/sqlite/operations.py": ""}
    assert find_wrong_imports(write_package(tmp_path, {**others, name: text})) == []


@pytest.mark.parametrize(
    "text",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from drumline.app import Drumline",
        "def look():\n    import drumline.app",
        "from importlib import import_module\nimport_module('drumline.app')",
    ],
)
def test_hidden_imports_count_too(tmp_path, text):
    assert find_wrong_imports(write_package(tmp_path, {"engine/run.py": text})) != []


def test_model_imports_errors_and_nothing_else(tmp_path):
    package = write_package(tmp_path, {"model/job.py": "from drumline.clock import Clock"})
    assert find_wrong_imports(package) == ["drumline/model/job.py:1: model may import only errors, not drumline.clock"]


@pytest.mark.parametrize("layer", ["model", "policy"])
def test_pure_modules_reach_neither_clock_nor_outside(tmp_path, layer):
    package = write_package(tmp_path, {f"{layer}/due.py": "from time import time"})
    assert find_wrong_imports(package) == [f"drumline/{layer}/due.py:1: {layer} is pure and may not import time"]


def test_randomness_belongs_to_clock_and_policy(tmp_path):
    files = dict.fromkeys(["clock.py", "policy/retry.py", "engine/fetch.py"], "import random")
    (complaint,) = find_wrong_imports(write_package(tmp_path, files))
    assert complaint.startswith("drumline/engine/fetch.py:1: ")


@pytest.mark.parametrize("name", ["engine/run.py", "app.py", "stores/files.py", "stores/postgres/connect.py"])
def test_only_open_knows_concrete_stores(tmp_path, name):
    package = write_package(tmp_path, {name: "from drumline.stores.sqlite.connect import connect"})
    assert find_wrong_imports(package) != []


def test_a_module_outside_the_order_is_named(tmp_path):
    package = write_package(tmp_path, {"utils.py": "import os"})
    assert "utils has no place" in find_wrong_imports(package)[0]


def test_a_store_module_outside_the_order_is_named(tmp_path):
    package = write_package(tmp_path, {"stores/extra.py": "from drumline.stores.base import Store"})
    assert "stores.extra has no place" in find_wrong_imports(package)[0]


def test_no_store_imports_the_front_file_of_the_stores(tmp_path):
    package = write_package(tmp_path, {"stores/memory.py": "from drumline.stores import Store"})
    assert "does not stand before it" in find_wrong_imports(package)[0]


@pytest.mark.parametrize(
    "text",
    [
        "from drumline.app import Drumline",
        "from drumline.app import _registry\n__all__ = ['_registry']",
        "def connect(): ...",
    ],
)
def test_a_front_file_that_shows_more_is_caught(tmp_path, text):
    assert find_leaks(write_package(tmp_path, {"__init__.py": text}) / "__init__.py") != []
