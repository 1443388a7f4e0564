import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from drumline.web.dashboard.assets import FOREVER, SCRIPTS, STYLES, VENDORED, assets
from drumline.web.dashboard.render import environment

STATIC = Path(str(files("drumline.web.dashboard"))) / "static"
TEMPLATES = Path(str(files("drumline.web.dashboard"))) / "templates"
MANIFEST = json.loads((STATIC / "vendor" / "manifest.json").read_text())


def test_every_vendored_file_stands_in_the_manifest():
    listed = {entry["file"] for entry in MANIFEST}
    found = {path.name for path in (STATIC / "vendor").iterdir() if path.is_file()} - {"manifest.json"}
    assert listed == found == set(VENDORED)


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: entry["file"])
def test_a_vendored_file_is_what_the_manifest_says(entry):
    body = (STATIC / "vendor" / entry["file"]).read_bytes()
    assert hashlib.sha256(body).hexdigest() == entry["sha256"]
    assert entry["version"]
    assert entry["licence"]
    assert (STATIC / "vendor" / entry["licence_text"]).read_text().strip()


def test_every_own_file_is_served():
    assert {path.stem for path in (STATIC / "styles").iterdir()} == set(STYLES)
    assert {path.stem for path in (STATIC / "scripts").iterdir()} == set(SCRIPTS)


def test_a_served_name_tells_what_is_in_it():
    for name, asset in assets().items():
        assert hashlib.sha256(asset.body).hexdigest()[:16] in name


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_a_template_has_nothing_inline_and_nothing_unescaped(path):
    text = path.read_text()
    assert not re.search(r"\sstyle\s*=|<style|\son[a-z]+\s*=|javascript:|\|\s*safe|autoescape|https?://", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_a_template_can_be_read(path):
    environment().get_template(str(path.relative_to(TEMPLATES)))


def test_own_scripts_run_nothing_that_is_a_text():
    for path in (STATIC / "scripts").iterdir():
        assert not re.search(
            r"innerHTML\s*=|insertAdjacentHTML|document\.write|\beval\(|new Function", path.read_text()
        )


def test_every_size_of_type_is_one_of_the_scale():
    for path in (STATIC / "styles").iterdir():
        if path.stem != "tokens":
            assert not re.search(r"font(-size)?:[^;]*\dpx", path.read_text()), path.name


def test_files_may_be_kept_for_ever():
    assert "immutable" in FOREVER
