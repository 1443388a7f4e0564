import pytest

from drumline.model.finding import Level
from drumline.policy.durability import check_durability

REDIS = {"appendonly": "yes", "appendfsync": "always", "save": "", "maxmemory": "0", "maxmemory-policy": "noeviction"}
POSTGRES = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "pooler": "no", "listener": "server"}
SQLITE = {"version": "3.51.3", "version_is": "good", "store.synchronous": "full", "journal_mode": "wal"}


def judge(kind: str, facts: dict[str, str]) -> list[tuple[str, str]]:
    return [(finding.level, finding.found) for finding in check_durability(kind, facts) if finding.level != "ok"]


@pytest.mark.parametrize(("kind", "facts"), [("redis", REDIS), ("postgres", POSTGRES), ("sqlite", SQLITE)])
def test_a_store_that_keeps_everything_is_well(kind, facts):
    assert judge(kind, facts) == []
    assert next(finding.check for finding in check_durability(kind, facts)) == "durable"


@pytest.mark.parametrize(
    ("kind", "facts", "level", "words"),
    [
        ("redis", REDIS | {"appendfsync": "everysec"}, "advice", "last second"),
        ("redis", REDIS | {"appendfsync": "no"}, "advice", "last minute"),
        ("redis", REDIS | {"appendonly": "no", "save": "3600 1"}, "wrong", "last snapshot"),
        ("redis", REDIS | {"appendonly": "no"}, "wrong", "keeps nothing"),
        ("redis", REDIS | {"maxmemory-policy": "allkeys-lru", "maxmemory": "9"}, "wrong", "throws keys away"),
        ("redis", REDIS | {"replicas": "2"}, "advice", "replicas: 2, store.confirm: server"),
        ("redis", REDIS | {"replicas": "0", "store.confirm": "replica"}, "wrong", "but the server has none"),
        ("redis", {}, "advice", "does not say"),
        ("postgres", POSTGRES | {"fsync": "off"}, "wrong", "fsync is off"),
        ("postgres", POSTGRES | {"full_page_writes": "off"}, "wrong", "full_page_writes is off"),
        ("postgres", POSTGRES | {"synchronous_commit": "off"}, "wrong", "synchronous_commit is off"),
        ("postgres", POSTGRES | {"store.synchronous": "normal"}, "advice", "neither enqueue nor finish waits"),
        ("postgres", POSTGRES | {"pooler": "yes", "listener": "pooler"}, "advice", "pooler"),
        ("postgres", POSTGRES | {"long_transaction": "process 7 of ann"}, "advice", "process 7 of ann"),
        ("sqlite", SQLITE | {"version": "3.34.1", "version_is": "too old"}, "wrong", "SQLite 3.34.1 is too old"),
        ("sqlite", SQLITE | {"version": "3.41.0", "version_is": "affected"}, "advice", "can lose a commit"),
        ("sqlite", SQLITE | {"network_file_system": "/mnt (nfs)"}, "wrong", "/mnt (nfs)"),
        ("sqlite", SQLITE | {"network_file_system": "/mnt (nfs)", "store.allow_network_fs": "yes"}, "advice", "/mnt"),
        ("sqlite", SQLITE | {"journal_mode": "delete"}, "advice", "journal mode is delete"),
        ("sqlite", SQLITE | {"store.synchronous": "normal"}, "advice", "does not wait for the disk"),
        ("memory", {}, "advice", "memory"),
    ],
)
def test_what_weakens_a_promise_is_told_with_its_reason_and_its_remedy(kind, facts, level, words):
    (finding,) = [one for one in check_durability(kind, facts) if one.level is not Level.OK]
    assert finding.level == level
    assert words in finding.found
    assert finding.why
    assert finding.do


def test_of_two_weaknesses_the_one_that_needs_no_crash_comes_first():
    facts = REDIS | {"maxmemory-policy": "volatile-ttl", "maxmemory": "1", "appendonly": "no"}
    assert [words.partition(" (")[0] for _, words in judge("redis", facts)] == [
        "when its memory is full it throws keys away",
        "it keeps nothing over a restart",
    ]


def test_a_server_whose_replicas_confirm_is_well():
    assert judge("redis", REDIS | {"replicas": "1", "store.confirm": "replica"}) == []


def test_a_listener_that_goes_past_the_pooler_is_well():
    findings = check_durability("postgres", POSTGRES | {"pooler": "yes"})
    assert [(finding.check, finding.level) for finding in findings] == [("durable", "ok"), ("pooler", "ok")]
