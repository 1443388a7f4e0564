"""The threads of a store: what they are given is done, and a loop hears of it."""

import asyncio
import logging
import subprocess
import sys
import threading

import pytest

from drumline.stores.hands import Hands


@pytest.fixture
def hands():
    hands = Hands(2, "test")
    yield hands
    hands.close()


def test_what_was_given_is_done_before_the_threads_go(hands):
    done = []

    def first():
        done.append("first")
        hands.give(lambda: done.append("second"))

    hands.give(first)
    hands.close()
    assert done == ["first", "second"]


def test_they_can_be_used_again_after_they_were_closed(hands):
    done = []
    for word in ("before", "after"):
        hands.give(lambda word=word: done.append(word))
        hands.close()
    assert done == ["before", "after"]


def test_no_more_threads_than_allowed_and_no_more_than_needed(hands):
    names = set()
    both_run = threading.Barrier(2, timeout=10)

    def work():
        names.add(threading.current_thread().name)
        both_run.wait()

    for _ in range(4):
        hands.give(work)
    hands.close()
    assert names == {"test-0", "test-1"}


@pytest.mark.asyncio
async def test_a_loop_gets_the_answer_or_the_error(hands):
    assert await hands.wait(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        await hands.wait(lambda: 1 / 0)


@pytest.mark.asyncio
async def test_who_is_cancelled_before_it_was_begun_has_not_asked(hands):
    done = []
    go_on = threading.Event()
    for _ in range(2):
        hands.give(go_on.wait)
    waiting = asyncio.ensure_future(hands.wait(lambda: done.append("asked")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go_on.set()
    hands.close()
    assert done == []


@pytest.mark.asyncio
async def test_who_is_cancelled_later_disturbs_nobody(hands):
    begun, go_on = threading.Event(), threading.Event()

    def work():
        begun.set()
        go_on.wait()

    waiting = asyncio.ensure_future(hands.wait(work))
    await asyncio.to_thread(begun.wait)
    waiting.cancel()
    go_on.set()
    assert await hands.wait(lambda: "the next") == "the next"


def test_an_error_that_nobody_waits_for_is_logged_and_the_thread_goes_on(hands, caplog):
    done = []
    hands.give(lambda: 1 / 0)
    hands.give(lambda: done.append("the next"))
    with caplog.at_level(logging.ERROR, logger="drumline.stores"):
        hands.close()
    assert done == ["the next"]
    assert "ZeroDivisionError" in caplog.text


def test_threads_that_nobody_owns_any_more_end():
    hands = Hands(1, "lost")
    hands.give(lambda: None)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "lost-0"]
    del hands
    thread.join(10)
    assert not thread.is_alive()


def test_what_was_given_is_done_before_the_process_exits():
    program = """
import time
from drumline.stores.hands import Hands
hands = Hands(1, "test")
hands.give(lambda: (time.sleep(0.3), print("done", flush=True)))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "done\n"
