"""Reads the settings, and remembers where each value came from.

    code  >  DRUMLINE_SECTION__KEY  >  drumline.toml, or else [tool.drumline] of pyproject.toml  >  default

Both files are looked for in the working folder only; where there is a drumline.toml, pyproject.toml is not read.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_settings import EnvSettingsSource, InitSettingsSource, PydanticBaseSettingsSource

from drumline.config.sections import PREFIX, Section, Settings
from drumline.config.synonyms import OTHER_NAMES, Decision, decide, find_url, note_backends
from drumline.errors import BadOption, BadSettings
from drumline.model.mask import mask_url
from drumline.model.queues import QueueRules
from drumline.model.redact import HIDDEN

__all__ = ["Configuration", "load_settings"]

# Variables of the project's own tests and measurements, which set nothing here.
_NOT_SETTINGS = ("DRUMLINE_TEST_", "DRUMLINE_BENCH_", "DRUMLINE_DEMO_", "DRUMLINE_CHAOS_", "DRUMLINE_FAILPOINT")
# Kubernetes sets these for a service whose name begins with drumline.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$")
_ENVIRONMENT = "environment"
# Never shown, not even where they are wrong.
_SECRETS = ("web.secret", "encryption.key", "encryption.older_keys", "webhook.url", "webhook.secret")


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of this process, with the origin of each."""

    settings: Settings
    # By dotted key: code, the name of a variable, the name of a file; a key that is not here has its default.
    origins: Mapping[str, str]
    # Sentences to say once at start.
    notes: tuple[str, ...] = ()

    def rows(self) -> list[tuple[str, str, str]]:
        """Every key with its value, secrets masked, and its origin; of other names only those that were given."""
        keys = [key for key in _known_keys() if key not in OTHER_NAMES or key in self.origins]
        return [(key, _show(key, self.settings), self.origins.get(key, "default")) for key in keys]


def load_settings(
    code: Mapping[str, Any] | None = None, *, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> Configuration:
    """Read the settings; BadSettings, naming key and origin, for one that is unknown or wrong.

    `code` holds what the program itself gives, by dotted key; None there means not given.
    """
    variables = os.environ if environ is None else environ
    in_code = {key: value for key, value in (code or {}).items() if value is not None}
    _refuse_unknown_variables(variables)
    sources: dict[str, PydanticBaseSettingsSource] = {
        "code": InitSettingsSource(Settings, _nest(in_code)),
        _ENVIRONMENT: _read_environment(variables),
    }
    file = _find_file(folder or Path.cwd())
    if file is not None:
        sources[file.name] = InitSettingsSource(Settings, _read_file(file))
    found = {origin: _flatten(source(), origin) for origin, source in sources.items()}
    origins = _find_origins(found, variables)
    settings = _build(tuple(sources.values()), found, origins)

    def place(key: str) -> int | None:
        return next((number for number, values in enumerate(found.values()) if key in values), None)

    other_url = find_url(settings, place)
    decisions = decide(settings, place, other_url)
    if decisions:
        values = {decision.key: decision.value for decision in decisions}
        origins |= {decision.key: _name_origin(decision, origins, found) for decision in decisions}
        decided = InitSettingsSource(Settings, _nest(values))
        settings = _build((decided, *sources.values()), {"": values, **found}, origins)
    return Configuration(settings, origins, (*_notes(found, other_url), *note_backends(settings)))


def _name_origin(decision: Decision, origins: Mapping[str, str], found: Mapping[str, Mapping[str, Any]]) -> str:
    """A variable tells its own name; of a file, that of the key in it is told too."""
    name = decision.by[0]
    return origins[name] if name in found[_ENVIRONMENT] else f"{origins[name]} ({name})"


@cache
def _known_keys() -> tuple[str, ...]:
    return tuple(_keys_of(Settings))


def _keys_of(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Section):
            yield from (f"{name}.{key}" for key in _keys_of(section))
        else:
            yield name


def _refuse_unknown_variables(variables: Mapping[str, str]) -> None:
    known = _known_keys()
    for variable in variables:
        name = variable.upper()
        if not name.startswith(PREFIX) or name.startswith(_NOT_SETTINGS) or _SERVICE_LINK.search(name):
            continue
        if _key_of(name) not in known:
            raise BadSettings(f"{variable} is not a setting{_suggest(name, map(_variable_of, known))}")


def _suggest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _variable_of(key: str) -> str:
    return PREFIX + key.replace(".", "__").upper()


def _key_of(variable: str) -> str:
    """The dotted key of a variable. Parts of a back-off or retention, which have names of their own, are left out."""
    path = variable.removeprefix(PREFIX).lower().replace("__", ".")
    return next((key for key in _known_keys() if f"{path}.".startswith(f"{key}.")), path)


def _nest(given: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in given.items():
        *sections, name = key.split(".")
        inner = nested
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[name] = value
    return nested


def _flatten(values: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """The values of a source by dotted key; all of them are known."""
    flat = dict(_walk(values, "", origin))
    known = _known_keys()
    unknown = next((key for key in flat if key not in known), None)
    if unknown is not None:
        raise BadSettings(f"{origin}: {unknown} is not a setting{_suggest(unknown, known)}")
    return flat


def _walk(values: Mapping[str, Any], prefix: str, origin: str) -> Iterator[tuple[str, Any]]:
    known = _known_keys()
    for name, value in values.items():
        key = f"{prefix}{name}"
        is_section = any(other.startswith(f"{key}.") for other in known)
        if is_section and isinstance(value, Mapping):
            yield from _walk(value, f"{key}.", origin)
        elif is_section:
            raise BadSettings(f"{origin}: {key} must be a table of settings, got {value!r}")
        elif isinstance(value, Mapping) and key not in known:
            yield from ((f"{key}.{inner}", value[inner]) for inner in value)
        else:
            yield key, value


def _read_environment(variables: Mapping[str, str]) -> EnvSettingsSource:
    source = EnvSettingsSource(Settings)
    source.env_vars = {name.lower(): value for name, value in variables.items() if value}
    return source


def _find_file(folder: Path) -> Path | None:
    files = (folder / "drumline.toml", folder / "pyproject.toml")
    return next((file for file in files if file.is_file()), None)


def _read_file(file: Path) -> dict[str, Any]:
    try:
        table: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise BadSettings(f"{file.name} cannot be read: {error}") from error
    if file.name != "pyproject.toml":
        return dict(table)
    table = table.get("tool", {}).get("drumline", {})
    if not isinstance(table, dict):
        raise BadSettings(f"{file.name}: tool.drumline must be a table of settings, got {table!r}")
    return table


def _find_origins(found: Mapping[str, Mapping[str, Any]], variables: Mapping[str, str]) -> dict[str, str]:
    ours = (name for name, value in variables.items() if value and name.upper().startswith(PREFIX))
    names = {_key_of(name.upper()): name for name in ours}
    origins: dict[str, str] = {}
    for origin, values in found.items():
        for key in values:
            origins.setdefault(key, names[key] if origin == _ENVIRONMENT else origin)
    return origins


def _build(
    sources: tuple[PydanticBaseSettingsSource, ...],
    found: Mapping[str, Mapping[str, Any]],
    origins: Mapping[str, str],
) -> Settings:
    class Loaded(Settings):
        @classmethod
        def settings_customise_sources(cls, *_: Any, **__: Any) -> tuple[PydanticBaseSettingsSource, ...]:
            return sources

    try:
        return Loaded()
    except ValidationError as error:
        raise BadSettings(_first_fault(error, found, origins)) from None


def _first_fault(error: ValidationError, found: Mapping[str, Mapping[str, Any]], origins: Mapping[str, str]) -> str:
    """Where the first wrong value came from, its key, what it must be, and what came."""
    fault = error.errors(include_url=False)[0]
    cause = fault.get("ctx", {}).get("error")
    reason = fault["msg"].replace("Input should be", "must be")
    path = ".".join(str(part) for part in fault["loc"])
    key = next((known for known in _known_keys() if f"{path}.".startswith(f"{known}.")), "")
    shown_key, got = key, None
    if isinstance(cause, BadOption):
        reason = f"must be {cause.expected}"
        # A section as a whole complains of one of its options; or what is wrong lies deep inside the value of a key.
        key = key or f"{path}.{cause.option.split()[0]}"
        shown_key, got = (f"{key}.{cause.option.partition('.')[2]}", cause.got) if "." in cause.option else (key, None)
    given = next(values[key] for values in found.values() if key in values) if got is None else got
    shown = HIDDEN if key in _SECRETS else mask_url(given) if isinstance(given, str) else given
    return f"{origins[key]}: {shown_key} {reason}, got {shown!r}"


def _notes(found: Mapping[str, Mapping[str, Any]], other: Decision | None) -> Iterator[str]:
    """What would surprise a person: another store than the one that the environment names."""
    in_code, outside, key = found["code"].get("store.url"), found[_ENVIRONMENT].get("store.url"), "store.url"
    if outside is None and other is not None and other.by[0] in found[_ENVIRONMENT]:
        outside, key = other.value, other.by[0]
    if in_code is not None and outside not in (None, in_code):
        where = _variable_of(key)
        yield f"the store named in code is used, {mask_url(in_code)}, not that of {where}, {mask_url(outside)}"


def _show(key: str, settings: Settings) -> str:
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    if key in _SECRETS and value:
        return HIDDEN
    return mask_url(value) if key.endswith("url") and value else _text(value)


def _text(value: Any) -> str:
    """A value as one would write it in a variable."""
    match value:
        case None | bool():
            return str(value).lower()
        case timedelta():
            return f"{value.total_seconds():g}s"
        case tuple():
            return ",".join(map(_text, value))
        case QueueRules():
            return "; ".join(f"{queue} {_text_of_queue(value, queue)}" for queue in value.queues) or "none"
        case msgspec.Struct():
            return " ".join(f"{name}={_text(inner)}" for name, inner in msgspec.structs.asdict(value).items())
        case _:
            return str(value)


def _text_of_queue(rules: QueueRules, queue: str) -> str:
    named = {"weight": rules.weights, "cap": rules.caps, "reserved": rules.reserved}
    return " ".join(f"{key}={numbers[queue]}" for key, numbers in named.items() if queue in numbers)
