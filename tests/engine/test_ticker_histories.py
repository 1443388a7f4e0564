"""Promise 3: whatever happens to a fleet, each tick is decided once, in time, and by its policy.

A history that fails names its seed; DRUMLINE_TEST_HISTORY=<seed> replays that one alone.
"""

import os
from datetime import timedelta

import msgspec
import pytest

from drumline.engine import ticker
from drumline.stores.memory import schedule
from tests.engine.histories import History
from tests.engine.oracle import check

# How many histories one test goes through, and how many such tests there are.
SLICE = 100
FEW, MANY = 20, 1_000
REPLAYED = os.environ.get("DRUMLINE_TEST_HISTORY")


def seeds_of(part: int) -> range:
    return range(part * SLICE, (part + 1) * SLICE) if REPLAYED is None else range(int(REPLAYED), int(REPLAYED) + 1)


def play(seed: int) -> None:
    history = History(seed)
    try:
        history.play()
        check(history)
    except Exception as error:
        raise AssertionError(f"history {seed}: {error} (replay it with DRUMLINE_TEST_HISTORY={seed})") from error


@pytest.mark.parametrize("part", range(FEW))
def test_no_tick_is_missing_double_or_early_in_any_history(part):
    for seed in seeds_of(part):
        play(seed)


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(FEW, MANY))
def test_no_tick_is_missing_double_or_early_in_a_hundred_thousand_histories(part):
    for seed in seeds_of(part):
        play(seed)


def test_one_seed_is_one_history():
    first, second = History(7), History(7)
    for history in (first, second):
        history.play()
    assert [(done.at, done.who, done.operation) for done in first.log] == [
        (done.at, done.who, done.operation) for done in second.log
    ]


def is_seen() -> bool:
    """Whether the oracle sees that something is broken."""
    for seed in range(SLICE):
        history = History(seed)
        history.play()
        try:
            check(history)
        except AssertionError:
            return True
    return False


def test_the_oracle_sees_a_fleet_in_which_nobody_stands_by(monkeypatch):
    monkeypatch.setattr(ticker, "GRACE", timedelta(hours=1))
    assert is_seen()


def test_the_oracle_sees_a_store_that_compares_no_versions(monkeypatch):
    def fire_whatever(state, now, firings, by):
        return fire(state, now, [msgspec.structs.replace(firing, version=None) for firing in firings], by)

    fire = schedule.fire
    monkeypatch.setattr(schedule, "fire", fire_whatever)
    assert is_seen()


def test_the_oracle_sees_a_store_that_keeps_no_ledger(monkeypatch):
    monkeypatch.setattr(schedule, "_is_decided", lambda *_: False)
    assert is_seen()
