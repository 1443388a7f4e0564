"""What can be set: one class for each section, with its defaults and what each key may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationInfo, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from drumline.config.queues import read_queue_rules
from drumline.errors import BadOption
from drumline.model.instant import parse_duration
from drumline.model.options import Backoff, JobOptions, Retention, check_namespace
from drumline.model.queues import QueueRules, read_queues
from drumline.model.redact import HIDDEN
from drumline.sealing import check_key
from drumline.webhook.address import read_target

__all__ = [
    "PREFIX",
    "DatabaseSettings",
    "EncryptionSettings",
    "JobsRedisSettings",
    "JobsSettings",
    "LogSettings",
    "SchedulerSettings",
    "Section",
    "Settings",
    "StoreSettings",
    "WebSettings",
    "WebhookSettings",
    "WorkerSettings",
]

PREFIX = "DRUMLINE_"
T = TypeVar("T")

_NUMBER = re.compile(r"\d+(\.\d+)?")


def _read_span(value: Any, info: ValidationInfo) -> timedelta:
    # A variable is always text: there a bare number of seconds is "25".
    is_number = isinstance(value, str) and _NUMBER.fullmatch(value)
    return parse_duration(float(value) if is_number else value, info.field_name or "")


def _read_positive_span(value: Any, info: ValidationInfo) -> timedelta:
    span = _read_span(value, info)
    if not span:
        raise BadOption(info.field_name or "", "a duration above zero", value)
    return span


def _read_optional_span(value: Any, info: ValidationInfo) -> timedelta | None:
    return None if value is None or value == "none" else _read_span(value, info)


def _read_optional(value: Any) -> Any:
    return None if value == "none" else value


def _split_text(value: Any) -> Any:
    """The parts of "a, b" as it stands in a variable."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _read_queues(value: Any) -> tuple[str, ...]:
    """Queue names, in the order in which they are served, or each with its weight: a=4."""
    names, weights = read_queues(_split_text(value), "queues")
    return tuple(f"{name}={weights[name]}" for name in names) if weights else names


def _read_backoff(value: Any) -> Backoff:
    if isinstance(value, Mapping):
        return _build(Backoff, value, "backoff")
    waits = _split_text(value)
    return Backoff.of(waits[0] if isinstance(waits, list) and len(waits) == 1 else waits)


def _read_retention(value: Any) -> Retention:
    return _build(Retention, value, "retention") if isinstance(value, Mapping) else Retention.of(value)


def _read_key(value: Any) -> str | None:
    return None if value is None else check_key(value)


def _read_keys(value: Any) -> tuple[str, ...]:
    parts = _split_text(value)
    if not isinstance(parts, list | tuple):
        raise BadOption("older_keys", "a list of keys", HIDDEN)
    return tuple(check_key(part, "older_keys") for part in parts)


def _read_target_url(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadOption("url", "a URL", HIDDEN)
    read_target(value)
    return value


def _build(kind: Callable[..., T], fields: Mapping[str, Any], option: str) -> T:
    try:
        return kind(**fields)
    except TypeError as error:
        raise BadOption(option, f"written with its own fields ({error})", dict(fields)) from error


def _matching(pattern: str, expected: str) -> BeforeValidator:
    def check(value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise BadOption(info.field_name or "", expected, value)
        return value

    return BeforeValidator(check)


def _read_namespace(value: Any, info: ValidationInfo) -> str:
    return check_namespace(value, info.field_name or "")


_Span = Annotated[timedelta, BeforeValidator(_read_span)]
_Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_text)]
_Count = Annotated[int, Field(ge=1)]
_URL = _matching(r"[a-z][a-z0-9+.]*://.*", "a URL, such as sqlite:///drumline.db")
_NAMESPACE = BeforeValidator(_read_namespace)
_OtherURL = Annotated[Annotated[str, _URL] | None, Field(repr=False)]
_OtherNamespace = Annotated[str, _NAMESPACE] | None
_APP = _matching(r"[\w.]+:[\w.]+", "module:attribute, such as shop.jobs:drum")


class Section(BaseModel):
    """A table of settings that knows all its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class StoreSettings(Section):
    """Where all state lives."""

    url: Annotated[str, _URL, Field(repr=False)] = "sqlite:///drumline.db"
    namespace: Annotated[str, _NAMESPACE] = "drumline"
    listen_url: Annotated[str | None, BeforeValidator(_read_optional), Field(repr=False)] = None
    auto_migrate: bool = True
    synchronous: Literal["full", "normal"] = "full"
    allow_network_fs: bool = False
    confirm: Literal["server", "disk", "replica"] = "server"


class JobsRedisSettings(Section):
    """Other names, for who comes from elsewhere: `config.synonyms` tells what they decide."""

    url: _OtherURL = None
    key_prefix: _OtherNamespace = None
    visibility_timeout_ms: Annotated[int, Field(ge=100)] | None = None


class JobsSettings(Section):
    """The defaults of every task."""

    max_attempts: int = JobOptions().max_attempts
    backoff: Annotated[Backoff, PlainValidator(_read_backoff)] = Backoff()
    timeout: Annotated[timedelta | None, BeforeValidator(_read_optional_span)] = None
    lease: _Span = JobOptions().lease
    retention: Annotated[Retention, PlainValidator(_read_retention)] = Retention()
    # What each worker keeps to for single queues.
    queues: Annotated[QueueRules, PlainValidator(read_queue_rules)] = QueueRules()
    # Other names, as in the section `redis`.
    backend: Literal["local", "sqlite", "redis", "postgres"] | None = None
    workers: _Count | None = None
    initial_backoff_ms: _Count | None = None
    redis: JobsRedisSettings = JobsRedisSettings()

    @property
    def options(self) -> JobOptions:
        """The defaults as a job's options."""
        return JobOptions(
            max_attempts=self.max_attempts,
            backoff=self.backoff,
            timeout=self.timeout,
            lease=self.lease,
            retention=self.retention,
        )

    @model_validator(mode="after")
    def _check(self) -> JobsSettings:
        # The options say themselves what they can be.
        _ = self.options
        return self


class WorkerSettings(Section):
    """How a worker takes and runs jobs. No queues means every queue."""

    queues: Annotated[tuple[str, ...], NoDecode, PlainValidator(_read_queues)] = ()
    concurrency: _Count = 100
    threads: _Count = 32
    # None: one for each core.
    children: Annotated[_Count | None, BeforeValidator(_read_optional)] = None
    jobs_per_child: _Count = 1000
    timeout_grace: _Span = timedelta(seconds=30)
    shutdown_timeout: _Span = timedelta(seconds=25)
    poll_interval: Annotated[timedelta, BeforeValidator(_read_positive_span)] = timedelta(seconds=10)


class SchedulerSettings(Section):
    """How a replica takes part in firing schedules."""

    replica_id: Annotated[str, Field(min_length=1)] | None = None
    # The store of the jobs holds the schedules too, whatever is named; in_process: each replica fires all for itself.
    backend: Literal["store", "in_process", "local", "sqlite", "postgres", "redis", "memory"] = "store"
    # The time limit of jobs of fleet schedules that set none.
    lease_ttl_secs: Annotated[timedelta | None, BeforeValidator(_read_optional_span)] = None
    # Another name of store.namespace.
    key_prefix: _OtherNamespace = None


class DatabaseSettings(Section):
    """Other names of store.url, where a backend is postgres."""

    url: _OtherURL = None
    primary_url: _OtherURL = None


class LogSettings(Section):
    """What the command line logs, and how."""

    level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"],
        BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value),
    ] = "info"
    format: Literal["text", "json"] = "text"


class WebSettings(Section):
    """What the pages need besides what `drum.install` is given."""

    # Seals the tokens by which end users follow their jobs; the same in every process of the fleet.
    secret: Annotated[str | None, Field(min_length=16, repr=False)] = None


class EncryptionSettings(Section):
    """How arguments and results are kept in the store: encrypted, where a key is set."""

    # Seals what is written.
    key: Annotated[str | None, BeforeValidator(_read_key), Field(repr=False)] = None
    # Open what was written before.
    older_keys: Annotated[tuple[str, ...], NoDecode, PlainValidator(_read_keys), Field(repr=False)] = ()

    @model_validator(mode="after")
    def _check(self) -> EncryptionSettings:
        if self.older_keys and self.key is None:
            raise BadOption("older_keys", "left out where encryption.key is not set", HIDDEN)
        return self


class WebhookSettings(Section):
    """Where alerts are sent to; nowhere, unless a URL is set."""

    url: Annotated[str | None, BeforeValidator(_read_target_url), Field(repr=False)] = None
    # Signs what is sent.
    secret: Annotated[str | None, Field(min_length=16, repr=False)] = None
    # Whether the name may lead to an address of a private network, or of this host.
    allow_private: bool = False
    # Of one try.
    timeout: Annotated[timedelta, BeforeValidator(_read_positive_span)] = timedelta(seconds=10)

    @model_validator(mode="after")
    def _check(self) -> WebhookSettings:
        if self.url is not None and self.secret is None:
            raise BadOption("url", "given together with webhook.secret, a text of 16 characters or more", HIDDEN)
        return self


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        # An empty variable is how compose files write one that is not set.
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    store: StoreSettings = StoreSettings()
    jobs: JobsSettings = JobsSettings()
    worker: WorkerSettings = WorkerSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    log: LogSettings = LogSettings()
    web: WebSettings = WebSettings()
    encryption: EncryptionSettings = EncryptionSettings()
    database: DatabaseSettings = DatabaseSettings()
    webhook: WebhookSettings = WebhookSettings()
    # Modules to import, so that the tasks in them are declared.
    imports: _Texts = ()
    app: Annotated[str, _APP] | None = None
