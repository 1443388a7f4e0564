"""The plan of faults, the wire that fails, and what a run is said to have come to."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from drumline.chaos.check import Evidence, Kind, Violation
from drumline.chaos.plan import CONNECTION, PROCESS, SERVER, Deed, draw_plan
from drumline.chaos.proxy import Mode, Switchboard, find_server
from drumline.chaos.report import Report, Tale, sum_up
from drumline.model.job import Attempt
from tests.chaos.test_check import job

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_same_seed_gives_the_same_plan_and_another_one_another():
    first = draw_plan(1, 60, 4, PROCESS | CONNECTION)
    assert first == draw_plan(1, 60, 4, PROCESS | CONNECTION)
    assert first != draw_plan(2, 60, 4, PROCESS | CONNECTION)


def test_a_plan_begins_with_each_deed_once_and_holds_only_those_that_can_be_done():
    plan = draw_plan(7, 120, 3, PROCESS | SERVER)
    assert {fault.deed for fault in plan[: len(PROCESS | SERVER)]} == PROCESS | SERVER
    assert {fault.deed for fault in plan} == PROCESS | SERVER
    assert {fault.place for fault in plan} == {1, 2, 3}
    assert max(fault.at for fault in plan) < 120


def test_clocks_are_wrong_only_where_they_can_be():
    assert not any(fault.skew for fault in draw_plan(7, 120, 3, PROCESS))
    assert any(fault.skew for fault in draw_plan(7, 120, 3, PROCESS, with_skew=True))


def test_what_is_frozen_sleeps_past_its_lease():
    assert min(fault.leases for fault in draw_plan(7, 600, 3, PROCESS) if fault.deed is Deed.FREEZE) > 1


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("postgresql://ann:secret@db.example/shop", ("db.example", 5432)),
        ("redis://cache.example:7000/0", ("cache.example", 7000)),
        ("sqlite:///shop.db", None),
        ("rediss://cache.example/0", None),
        ("postgresql://one,two/shop", None),
        ("postgresql://db.example/shop?sslmode=verify-full", None),
    ],
)
def test_a_server_is_reached_through_a_wire_where_that_can_be(url, server):
    assert find_server(url) == server


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that says what it hears."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while data := connection.recv(100):
                connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def wire(echo) -> Iterator[tuple[Switchboard, socket.socket]]:
    board = Switchboard(echo, 1)
    with socket.create_connection(("127.0.0.1", board.proxies[0].port), timeout=10) as connection:
        assert talk(connection) == b"hello"
        yield board, connection
    board.close()


def talk(connection: socket.socket) -> bytes:
    connection.sendall(b"hello")
    return hear(connection)


def hear(connection: socket.socket) -> bytes:
    try:
        return connection.recv(100)
    except ConnectionResetError:
        return b""


def test_a_url_is_led_through_the_wire_with_its_user_and_database(wire):
    board, _ = wire
    (proxy,) = board.proxies
    assert proxy.lead("postgresql://ann:secret@db/shop") == f"postgresql://ann:secret@127.0.0.1:{proxy.port}/shop"


def test_a_wire_that_is_cut_ends_its_connections(wire):
    board, connection = wire
    board.cut(0)
    assert hear(connection) == b""


def test_a_deaf_wire_loses_the_answer_and_the_connection(wire):
    board, connection = wire
    board.set_mode(0, Mode.DEAF)
    assert talk(connection) == b""


def test_a_silent_wire_passes_everything_once_it_is_mended(wire):
    board, connection = wire
    board.set_mode(0, Mode.BLACKHOLE)
    connection.sendall(b"hello")
    connection.settimeout(0.1)
    with pytest.raises(TimeoutError):
        connection.recv(100)
    connection.settimeout(10)
    board.set_mode(0, Mode.PASS)
    assert hear(connection) == b"hello"


def test_a_slow_wire_passes_everything_later(wire):
    board, connection = wire
    board.set_mode(0, Mode.DELAY)
    assert talk(connection) == b"hello"


def tale(*outages: tuple[datetime, datetime], exits: tuple[Violation, ...] = ()) -> Tale:
    return Tale(
        seed=1,
        seconds=60,
        lease=timedelta(seconds=2),
        deeds={Deed.KILL: 3},
        zombies=0,
        skewed=0,
        doubts=0,
        outages=outages,
        crashes=(),
        exits=exits,
    )


def rescued_after(seconds: float) -> Report:
    return sum_up(tale(), evidence_of(seconds))


def evidence_of(seconds: float) -> Evidence:
    lost = Attempt(1, 1, "a", "b", START, START + timedelta(seconds=2), "lost")
    again = lost.ended_at + timedelta(seconds=seconds)
    done = Attempt(2, 2, "b", "b", again, again, "done")
    return Evidence(accepted=frozenset(), lines=[], jobs=[job(lost, done, due_at=again)], ticks=[], counts=[])


def test_rescue_is_measured_from_the_end_of_the_lease():
    assert rescued_after(0.4).reclaim_p99 == timedelta(seconds=0.4)
    assert rescued_after(0.4).is_quick
    assert not rescued_after(1.4).is_quick


def test_rescue_is_not_measured_while_the_store_was_away():
    outage = (START + timedelta(seconds=1), START + timedelta(seconds=3))
    assert sum_up(tale(outage), evidence_of(5)).reclaim_p99 is None


def test_a_worker_that_ended_badly_breaks_a_promise_too():
    broken = Violation(Kind.EXIT, "worker 1", "it ended by itself with code 1")
    report = sum_up(tale(exits=(broken,)), Evidence(accepted=frozenset(), lines=[], jobs=[], ticks=[], counts=[]))
    assert not report.is_sound
    lines = list(report.lines())
    assert lines[-1] == "verdict: BROKEN: 1 × bad exit (seed 1, 60 s)"
    assert f"  {broken}" in lines
