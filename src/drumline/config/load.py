"""Reads the settings, and remembers where each value came from.

    code  >  DRUMLINE_SECTION__KEY  >  drumline.toml, or else [tool.drumline] of pyproject.toml  >  default

Both files are looked for in the working folder only; where there is a drumline.toml, pyproject.toml is not read.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource, InitSettingsSource, PydanticBaseSettingsSource

from drumline.config.sections import PREFIX, Section, Settings
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
_SECRETS = ("web.secret", "encryption.key", "encryption.older_keys")


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of this process, with the origin of each."""

    settings: Settings
    # By dotted key: code, the name of a variable, the name of a file; a key that is not here has its default.
    origins: Mapping[str, str]
    # Sentences to say once at start.
    notes: tuple[str, ...] = ()

    def rows(self) -> list[tuple[str, str, str]]:
        """Every key with its value, secrets masked, and its origin."""
        return [(key, _show(key, self.settings), self.origins.get(key, "default")) for key in _known_keys()]


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
    return Configuration(settings, origins, (*_notes(found), *_notes_of_scheduler(settings)))


def _known_keys() -> list[str]:
    keys = []
    for name, field in Settings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Section):
            keys += [f"{name}.{key}" for key in section.model_fields]
        else:
            keys.append(name)
    return keys


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
    parts = variable.removeprefix(PREFIX).lower().split("__")
    return ".".join(parts[:2] if parts[:1] == ["jobs"] else parts)


def _nest(given: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in given.items():
        section, dot, name = key.partition(".")
        if dot:
            nested.setdefault(section, {})[name] = value
        else:
            nested[key] = value
    return nested


def _flatten(values: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """The values of a source by dotted key; all of them are known."""
    known = _known_keys()
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if name in known:
            flat[name] = value
        elif isinstance(value, Mapping):
            flat.update({f"{name}.{key}": inner for key, inner in value.items()})
        elif any(key.startswith(f"{name}.") for key in known):
            raise BadSettings(f"{origin}: {name} must be a table of settings, got {value!r}")
        else:
            flat[name] = value
    unknown = next((key for key in flat if key not in known), None)
    if unknown is not None:
        raise BadSettings(f"{origin}: {unknown} is not a setting{_suggest(unknown, known)}")
    return flat


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
    name, *rest = (str(part) for part in fault["loc"])
    cause = fault.get("ctx", {}).get("error")
    reason = fault["msg"].replace("Input should be", "must be")
    if isinstance(cause, BadOption):
        # A section as a whole complains of one of its options.
        rest, reason = cause.option.split(), f"must be {cause.expected}"
    path = name if name in _known_keys() else f"{name}.{rest[0]}"
    # What is wrong may lie deep inside the value of a key.
    key = next(known for known in _known_keys() if f"{path}.".startswith(f"{known}."))
    given = next(values[key] for values in found.values() if key in values)
    got = cause.got if isinstance(cause, BadOption) and path != key else given
    shown = HIDDEN if key in _SECRETS else mask_url(got) if isinstance(got, str) else got
    return f"{origins[key]}: {path} {reason}, got {shown!r}"


def _notes(found: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """What would surprise a person: another store than the one that the environment names."""
    in_code, outside = found["code"].get("store.url"), found[_ENVIRONMENT].get("store.url")
    if in_code is None or outside in (None, in_code):
        return ()
    variable = _variable_of("store.url")
    return (f"the store named in code is used, {mask_url(in_code)}, not that of {variable}, {mask_url(outside)}",)


def _notes_of_scheduler(settings: Settings) -> tuple[str, ...]:
    """One store holds jobs and schedules, so that a tick and its job are one step."""
    wanted, url = settings.scheduler.backend, settings.store.url
    kind = {"local": "sqlite", "postgres": "postgresql"}.get(wanted, wanted)
    if wanted in ("store", "in_process") or url.startswith(kind):
        return ()
    return (f"scheduler.backend is {wanted}, but the schedules are held by the store of the jobs, {mask_url(url)}",)


def _show(key: str, settings: Settings) -> str:
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    if key in _SECRETS and value:
        return HIDDEN
    return mask_url(value) if key in ("store.url", "store.listen_url") and value else _text(value)


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
