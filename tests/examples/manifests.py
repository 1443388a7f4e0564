"""Reads what tells others how to run a program: compose files, systemd units, Kubernetes manifests."""

import configparser
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from drumline.model.instant import parse_duration

_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<text>[^}]*))?\}")


def read_compose(path: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """The services of a compose file, with variables filled in as `docker compose` does."""
    read = yaml.safe_load(path.read_text())
    services: dict[str, Any] = _fill(read["services"], environment)
    return services


def read_manifests(folder: Path) -> list[dict[str, Any]]:
    """Every object that the YAML files of a folder describe."""
    return [one for path in sorted(folder.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]


def read_unit(path: Path) -> configparser.ConfigParser:
    """A unit of systemd. A key may come once in a section, which those of the examples heed."""
    unit = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",), delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(path.read_text())
    return unit


def read_seconds(text: str) -> float:
    """So many seconds as `40s` or `40`."""
    return parse_duration(float(text) if text.isdigit() else text, "duration").total_seconds()


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping inside a value, itself first."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from walk(part)


def _fill(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(part, environment) for key, part in value.items()}
    if isinstance(value, list):
        return [_fill(part, environment) for part in value]
    return _VARIABLE.sub(lambda found: _look_up(found, environment), value) if isinstance(value, str) else value


def _look_up(found: re.Match[str], environment: Mapping[str, str]) -> str:
    if value := environment.get(found["name"]):
        return value
    if found["kind"] == "?":
        raise KeyError(f"{found['name']}: {found['text']}")
    return found["text"] or ""
