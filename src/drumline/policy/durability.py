"""How durable a store is, by what it says of itself, and what of Drumline's promises that weakens.

Each store tells its facts by names of its own (`Store.inspect`); here they are judged, worst first.
"""

from __future__ import annotations

from collections.abc import Mapping

from drumline.model.finding import Finding, Level

__all__ = ["check_durability", "check_redis"]

Facts = Mapping[str, str]

_LOST = "an accepted job could be lost"


def check_durability(kind: str, facts: Facts) -> list[Finding]:
    """What the facts of a store of this kind mean; at least one finding."""
    findings = {
        "sqlite": _check_sqlite,
        "postgres": _check_postgres,
        "redis": check_redis,
        "memory": _check_memory,
    }[kind](facts)
    if any(finding.check == "durable" for finding in findings):
        return findings
    return [Finding("durable", Level.OK, "what is accepted is on disk before it is answered"), *findings]


def check_redis(facts: Facts) -> list[Finding]:
    """Of a server that tells nothing, only that it does not."""
    if "appendonly" not in facts:
        return [
            _advise(
                "the server does not say how durable it is",
                f"without persistence {_LOST} in a restart",
                "look at its documentation, or let this user run CONFIG GET",
            )
        ]
    return [finding for finding in (_of_memory(facts), _of_disk(facts), _of_replicas(facts)) if finding]


def _of_memory(facts: Facts) -> Finding | None:
    policy = facts.get("maxmemory-policy", "noeviction")
    if policy == "noeviction" or facts.get("maxmemory", "0") == "0":
        return None
    return _refuse(
        f"when its memory is full it throws keys away (maxmemory-policy {policy}), and jobs with them",
        f"{_LOST}, without a word",
        "set maxmemory-policy noeviction",
    )


def _of_disk(facts: Facts) -> Finding | None:
    why = f"{_LOST}, and a tick could fire again"
    if facts["appendonly"] == "yes":
        match facts.get("appendfsync"):
            case "everysec":
                found = "a crash may lose the last second (appendfsync everysec)"
                return _advise(found, why, "set appendfsync always if that matters")
            case "no":
                found = "a crash of the machine may lose the last minute (appendfsync no)"
                return _advise(found, why, "set appendfsync always or everysec")
            case _:
                return None
    if facts.get("save"):
        return _refuse("a crash loses what came after the last snapshot (appendonly no)", why, "set appendonly yes")
    return _refuse("it keeps nothing over a restart (appendonly no, no save)", why, "set appendonly yes")


def _of_replicas(facts: Facts) -> Finding | None:
    replicas, confirm = int(facts.get("replicas", "0")), facts.get("store.confirm", "server")
    if confirm == "replica" and not replicas:
        return Finding(
            "replicas",
            Level.WRONG,
            "store.confirm is replica, but the server has none",
            "no enqueue is confirmed: each is stored, and raises an error",
            "start a replica, or set store.confirm = disk",
        )
    if replicas and confirm != "replica":
        return Finding(
            "replicas",
            Level.ADVICE,
            f"a replica that takes over may lack the last moments (replicas: {replicas}, store.confirm: {confirm})",
            f"{_LOST}, and a tick could fire again, in a failover",
            "set store.confirm = replica if that matters",
        )
    return None


def _check_postgres(facts: Facts) -> list[Finding]:
    return [finding for finding in (*_of_log(facts), _of_pooler(facts), _of_transactions(facts)) if finding]


def _of_log(facts: Facts) -> list[Finding | None]:
    crash = f"{_LOST} or the whole database damaged when the server's machine crashes"
    commit = facts.get("synchronous_commit", "on")
    return [
        _refuse("fsync is off", crash, "set fsync = on") if facts.get("fsync") == "off" else None,
        _refuse("full_page_writes is off", crash, "set full_page_writes = on, unless the disk writes whole pages")
        if facts.get("full_page_writes") == "off"
        else None,
        _refuse("synchronous_commit is off", f"{_LOST} in a crash of the server", "set synchronous_commit = on")
        if commit == "off"
        else None,
        _advise(
            "store.synchronous is normal: neither enqueue nor finish waits for the server's disk",
            f"{_LOST} in a crash of the server, up to a second old",
            "set store.synchronous = full if that matters",
        )
        if facts.get("store.synchronous") == "normal"
        else None,
    ]


def _of_pooler(facts: Facts) -> Finding | None:
    if facts.get("pooler") != "yes":
        return None
    if facts.get("listener") == "server":
        return Finding("pooler", Level.OK, "a pooler stands before the server, and store.listen_url goes past it")
    return Finding(
        "pooler",
        Level.ADVICE,
        "a pooler stands before the server, and hints do not come through it",
        "workers look every second instead of being told at once",
        "set store.listen_url to the server's own address",
    )


def _of_transactions(facts: Facts) -> Finding | None:
    long = facts.get("long_transaction")
    if not long:
        return None
    return Finding(
        "transactions",
        Level.ADVICE,
        f"a transaction has been open for more than five minutes: {long}",
        "the server cannot clear away what has ended since: claims become slower",
        "end it, or set idle_in_transaction_session_timeout",
    )


def _check_sqlite(facts: Facts) -> list[Finding]:
    findings = (_of_file_system(facts), _of_version(facts), _of_journal(facts), _of_synchronous(facts))
    return [finding for finding in findings if finding]


def _of_file_system(facts: Facts) -> Finding | None:
    network = facts.get("network_file_system")
    if not network:
        return None
    return Finding(
        "file system",
        Level.ADVICE if facts.get("store.allow_network_fs") == "yes" else Level.WRONG,
        f"the file is on a network file system: {network}",
        "SQLite's locks do not hold there: two hosts could write at once and damage the file",
        "move the file to a local disk, or use a server for a fleet of more than one host",
    )


def _of_version(facts: Facts) -> Finding | None:
    version = facts.get("version", "")
    match facts.get("version_is"):
        case "too old":
            return Finding(
                "sqlite version",
                Level.WRONG,
                f"SQLite {version} is too old",
                "Drumline needs 3.35 or newer, and does not open the file",
                "use a newer Python",
            )
        case "affected":
            return Finding(
                "sqlite version",
                Level.ADVICE,
                f"SQLite {version} can lose a commit when two programs write at once",
                "Drumline's processes take turns by a lock file, which protects them; programs of your own do not",
                "use SQLite 3.51.3 or newer if programs of your own write to the same file",
            )
        case _:
            return Finding("sqlite version", Level.OK, f"SQLite {version}")


def _of_journal(facts: Facts) -> Finding | None:
    mode = facts.get("journal_mode", "wal")
    if mode == "wal":
        return None
    return _advise(
        f"the file's journal mode is {mode}",
        "readers and the writer wait for each other until it is wal",
        "run `drumline migrate`, which sets it; if it stays, use a local disk",
    )


def _of_synchronous(facts: Facts) -> Finding | None:
    if facts.get("store.synchronous") != "normal":
        return None
    return _advise(
        "store.synchronous is normal: a commit does not wait for the disk",
        f"{_LOST} when the machine loses power; a crash of the program loses nothing",
        "set store.synchronous = full if that matters",
    )


def _check_memory(facts: Facts) -> list[Finding]:
    del facts
    return [_advise("jobs live in this process's memory", "they end with it", "use a file or a server for real work")]


def _advise(found: str, why: str, do: str) -> Finding:
    return Finding("durable", Level.ADVICE, found, why, do)


def _refuse(found: str, why: str, do: str) -> Finding:
    return Finding("durable", Level.WRONG, found, why, do)
