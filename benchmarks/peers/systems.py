"""What is compared: each system with its settings, what it keeps of a job, and the environment that it runs in.

Beside ours stand the bare loops of each store, the least that a queue there can do, and the peers.

Each peer stands at a good setting for one worker process: where it keeps results only if asked, it is not asked, and
where it looks for work at intervals, it looks often. What it does less than Drumline for a job is said with it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

Store: TypeAlias = Literal["sqlite", "postgres", "redis"]
STORES: tuple[Store, ...] = get_args(Store)
Kind: TypeAlias = Literal["ours", "bare", "peer"]
# What is measured in one go, by a process of its own on an empty store of its own.
Part: TypeAlias = Literal["load", "idle", "half", "rest", "schedules", "waiting"]
PARTS: tuple[Part, ...] = get_args(Part)

OURS = "drumline"
# What the harness itself needs in every environment.
HARNESS = ("psutil==7.2.2", "uvloop==0.23.0")
_PSYCOPG = "psycopg[binary,pool]==3.3.8"
_REDIS = ("redis==8.1.0", "hiredis==3.5.0")
ENVIRONMENTS: Mapping[str, tuple[str, ...]] = {
    "arq": ("arq==0.28.0", "redis==5.3.1", "hiredis==3.5.0"),
    # kombu imports packaging and does not ask for it.
    "celery": ("celery==5.7.0", "kombu==5.7.0", "packaging==26.3", *_REDIS),
    "chancy": ("chancy==0.26.0", _PSYCOPG),
    "dramatiq": ("dramatiq==2.2.1", *_REDIS),
    "fastapi-taskflow": ("fastapi-taskflow==0.12.1",),
    "huey": ("huey==3.5.4", *_REDIS),
    "pgqueuer": ("pgqueuer==1.6.0", "asyncpg==0.32.0"),
    "pgwerk": ("pgwerk==0.1.26", _PSYCOPG),
    "procrastinate": ("procrastinate==3.10.0", _PSYCOPG),
    "rq": ("rq==2.12.0", *_REDIS),
    "saq": ("saq==0.26.4", *_REDIS, _PSYCOPG),
    "streaq": ("streaq==7.2.0", "coredis==6.9.0"),
    "taskiq-redis": ("taskiq-redis==1.2.4", "taskiq==0.13.0", *_REDIS),
}
# Which store a client speaks to: an environment may hold those of two.
_CLIENTS: Mapping[str, Store] = {"redis": "redis", "hiredis": "redis", "psycopg": "postgres"}
_OUR_CLIENTS: Mapping[Store, tuple[str, ...]] = {
    "sqlite": (),
    "postgres": ("psycopg",),
    "redis": ("redis", "hiredis"),
}
# The client by which the harness looks into the store, where the system brings another one.
LOOKING: Mapping[str, tuple[str, ...]] = {"pgqueuer": (_PSYCOPG,), "streaq": _REDIS}

_OURS_KEEPS = "its whole history; ends after the run"


@dataclass(frozen=True, slots=True)
class System:
    """One system on one store."""

    name: str
    store: Store
    # The module in `adapters` that drives it.
    adapter: str
    settings: str
    # What it still knows of a job that has ended, and when it lets go of one that runs.
    keeps: str
    # The most jobs for one drain, so that a slow system is measured for seconds and not for minutes.
    most_jobs: int
    # None is the environment of this project.
    environment: str | None
    variables: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = "peer"
    # The setting of ours that it is compared with.
    beside: str = OURS
    # The load comes first: others build on what it finds.
    parts: tuple[Part, ...] = ("load", "idle", "half")

    @property
    def packages(self) -> tuple[str, ...]:
        """The names of what its speed depends on, as they are installed."""
        if self.environment is None:
            return (*((OURS,) if self.kind == "ours" else ()), *_OUR_CLIENTS[self.store])
        names = [re.split(r"[\[=]", requirement)[0] for requirement in ENVIRONMENTS[self.environment]]
        return tuple(name for name in names if _CLIENTS.get(name, self.store) == self.store)


def _ours(store: Store, settings: str = "concurrency 100") -> System:
    return System(OURS, store, "ours", settings, _OURS_KEEPS, 50_000, None, kind="ours", parts=PARTS)


def _bare(
    store: Store, name: str, keeps: str, *, beside: str = OURS, settings: str = "batches of 100", **variables: str
) -> System:
    """The least that a queue on this store can do; it knows a drain only, and no worker that waits."""
    parts: tuple[Part, ...] = ("load",)
    adapter = f"bare_{store}"
    return System(name, store, adapter, settings, keeps, 50_000, None, variables, "bare", beside, parts)


def _bare_sqlite(synchronous: str, more: str = "") -> tuple[System, ...]:
    """The two bare loops that are as durable as ours in this mode."""
    settings = f"batches of 100, synchronous {synchronous}"
    same = {"beside": f"{OURS}{more}", "settings": settings, "DRUMLINE_BENCH_SYNCHRONOUS": synchronous}
    return (
        _bare(
            "sqlite", f"bare, with history{more}", "the facts that ours keeps", DRUMLINE_BENCH_HISTORY="kept", **same
        ),
        _bare("sqlite", f"bare, no history{more}", "nothing; ends after the run", **same),
    )


SYSTEMS = (
    _ours("sqlite", "concurrency 100, synchronous full (default)"),
    System(
        f"{OURS}, normal",
        "sqlite",
        "ours",
        "concurrency 100, synchronous normal",
        _OURS_KEEPS,
        50_000,
        None,
        {"DRUMLINE_STORE__SYNCHRONOUS": "normal"},
        "ours",
    ),
    *_bare_sqlite("full"),
    *_bare_sqlite("normal", ", normal"),
    System("huey", "sqlite", "huey", "1 thread, does not sync", "nothing; gone before the run", 20_000, "huey"),
    System(
        "huey, fsync",
        "sqlite",
        "huey",
        "1 thread, fsync on",
        "nothing; gone before the run",
        10_000,
        "huey",
        {"DRUMLINE_BENCH_HUEY": "fsync"},
    ),
    System(
        "fastapi-taskflow",
        "sqlite",
        "taskflow",
        "eager, in the process that enqueues",
        "in memory, with snapshots each second",
        20_000,
        "fastapi-taskflow",
        # A stream from another process would run there.
        parts=("load", "idle"),
    ),
    _ours("postgres"),
    _bare("postgres", "bare, with history", "six columns; ends after the run"),
    System("PgQueuer", "postgres", "pgqueuer", "batch_size 1000", "a log; ends after the run", 50_000, "pgqueuer"),
    System(
        "PgQueuer, 200",
        "postgres",
        "pgqueuer",
        "batch_size 200",
        "a log; ends after the run",
        50_000,
        "pgqueuer",
        {"DRUMLINE_BENCH_BATCH": "200"},
    ),
    System(
        "Procrastinate",
        "postgres",
        "procrastinate",
        "concurrency 100, pool of 20",
        "the row; ends after the run",
        2000,
        "procrastinate",
    ),
    System(
        "chancy",
        "postgres",
        "chancy",
        "concurrency 100, AsyncExecutor, eager polling",
        "the row; ends within a second after the run",
        10_000,
        "chancy",
    ),
    System(
        "SAQ", "postgres", "saq_postgres", "concurrency 100, pool of 20", "the row; ends after the run", 2000, "saq"
    ),
    System("pgwerk", "postgres", "pgwerk", "concurrency 100", "the row; ends after the run", 1000, "pgwerk"),
    _ours("redis"),
    _bare("redis", "bare, no history", "nothing; ends after the run", settings="three batches of 100 at once"),
    System("SAQ", "redis", "saq_redis", "concurrency 100", "for ten minutes; ends after the run", 10_000, "saq"),
    System(
        "taskiq-redis",
        "redis",
        "taskiq_redis",
        "100 tasks, stream broker, xread_count 100",
        "the stream; ends after the run",
        20_000,
        "taskiq-redis",
    ),
    System("arq", "redis", "arq", "max_jobs 100, looks every 10 ms", "nothing; ends after the run", 10_000, "arq"),
    System("streaq", "redis", "streaq", "concurrency 100, ttl 0", "nothing; ends after the run", 10_000, "streaq"),
    System("dramatiq", "redis", "dramatiq", "8 threads", "nothing; ends after the run", 10_000, "dramatiq"),
    System(
        "celery",
        "redis",
        "celery",
        "solo pool, acks late, prefetch 100, results ignored",
        "nothing; ends after the run",
        5000,
        "celery",
    ),
    System("rq", "redis", "rq", "SimpleWorker, result_ttl 0", "nothing; ends after the run", 2000, "rq"),
    System("huey", "redis", "huey", "4 threads, no results", "nothing; gone before the run", 20_000, "huey"),
)
