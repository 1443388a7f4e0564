import sys

import pytest

from drumline.errors import BadOption, BadSettings
from drumline.model.sealed import Scope, is_spoiled, split
from drumline.sealing import KeyRing, check_key, generate_key

KEY, OTHER = generate_key(), generate_key()


def test_what_the_ring_seals_only_a_ring_with_the_key_opens():
    sealed = KeyRing(KEY).seal(b"words", Scope.JOB, "task", "id")
    assert b"words" not in sealed
    assert KeyRing(OTHER, [KEY]).open(sealed, Scope.JOB, "task", "id") == b"words"
    assert KeyRing(OTHER).open(sealed, Scope.JOB, "task", "id") == sealed


def test_the_current_key_seals():
    ring = KeyRing(KEY, [OTHER])
    assert split(ring.seal(b"", Scope.JOB, "a"))[0] == ring.current == KeyRing(KEY).current


def test_equal_arguments_look_different_but_for_those_of_a_schedule():
    ring = KeyRing(KEY)
    assert ring.seal(b"words", Scope.JOB, "t", "i") != ring.seal(b"words", Scope.JOB, "t", "i")
    assert ring.seal(b"words", Scope.SCHEDULE, "t", "s") == ring.seal(b"words", Scope.SCHEDULE, "t", "s")
    assert ring.seal(b"words", Scope.SCHEDULE, "t", "s") != ring.seal(b"words", Scope.SCHEDULE, "t", "other")


@pytest.mark.parametrize("owner", [("task", "other"), ("other", "id"), ("taski", "d"), ("task",)])
def test_a_body_opens_for_its_owner_only(owner):
    ring = KeyRing(KEY)
    assert is_spoiled(ring.open(ring.seal(b"words", Scope.JOB, "task", "id"), Scope.JOB, *owner))


def test_a_body_that_was_changed_in_any_place_does_not_open():
    ring = KeyRing(KEY)
    sealed = ring.seal(b"words", Scope.JOB, "task", "id")
    begin = sealed.rindex(b":") + 1
    for place in range(begin, len(sealed) - 4):
        letter = b"A" if sealed[place : place + 1] != b"A" else b"B"
        changed = sealed[:place] + letter + sealed[place + 1 :]
        assert is_spoiled(ring.open(changed, Scope.JOB, "task", "id"))
    assert is_spoiled(ring.open(sealed[:-4] + b'"', Scope.JOB, "task", "id"))


@pytest.mark.parametrize("key", ["", "short", "!" * 44, "A" * 40, 7, None])
def test_a_wrong_key_is_refused_and_not_repeated(key):
    with pytest.raises(BadOption) as refusal:
        check_key(key)
    assert str(refusal.value) == "key must be a key as `drumline keys generate` prints it, got '***'"


def test_a_ring_does_not_print_its_keys():
    shown = repr(KeyRing(KEY, [OTHER]))
    assert KEY not in shown
    assert OTHER not in shown


def test_a_missing_package_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(BadSettings, match=r"pip install 'drumline\[crypto\]'"):
        KeyRing(KEY)
