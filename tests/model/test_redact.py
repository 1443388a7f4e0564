import msgspec
import pytest

from drumline.model.redact import HIDDEN, Redactor, is_secret_name
from drumline.model.secret import Marks

NOTE = Marks(parameters=frozenset({"note"}))


@pytest.mark.parametrize(
    "name",
    ["password", "user_password", "API_KEY", "apiKey", "token", "Authorization", "client-secret", "pin", "card_number"],
)
def test_names_that_sound_like_secrets_are_known(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["user_id", "path", "passenger", "spinning", "author", "key", "cardinal"])
def test_innocent_names_are_left_alone(name):
    assert not is_secret_name(name)


def test_values_are_hidden_by_name_at_any_depth():
    args = {"user": {"name": "ann", "password": "hunter22"}, "items": [{"token": ["abcd", 12345]}], "ok": True}
    shown = {"user": {"name": "ann", "password": HIDDEN}, "items": [{"token": HIDDEN}], "ok": True}
    assert Redactor().args(args) == shown


def test_marked_parameters_are_hidden_too():
    assert Redactor(marked=NOTE).args({"note": "for you", "n": 1}) == {"note": HIDDEN, "n": 1}


def test_marked_fields_are_hidden_below_the_parameters():
    redact = Redactor({"card": {"number": "4000-1"}, "number": 12345}, Marks(fields=frozenset({"number"})))
    shown = redact.args({"card": {"number": "4000-1", "day": 5}, "cards": [{"number": None}], "number": 12345})
    assert shown == {"card": {"number": HIDDEN, "day": 5}, "cards": [{"number": HIDDEN}], "number": 12345}
    assert redact.value({"charged": {"number": "other"}}) == {"charged": {"number": HIDDEN}}
    assert redact.text("card 4000-1 of 12345") == f"card {HIDDEN} of 12345"


def test_what_is_hidden_in_the_arguments_is_hidden_in_texts():
    redact = Redactor({"note": "eyes only", "deep": [{"token": {"a": "abcd", "b": [98765]}}]}, marked=NOTE)
    text = "ValueError: eyes only, abcd and 98765 are wrong"
    assert redact.text(text) == f"ValueError: {HIDDEN}, {HIDDEN} and {HIDDEN} are wrong"
    assert redact.value(["eyes only", {"eyes only": 1, "x": None}, 5]) == [HIDDEN, {HIDDEN: 1, "x": None}, 5]


def test_short_and_empty_values_are_not_looked_for():
    redact = Redactor({"password": "abc", "token": True, "secret": None})
    assert redact.text("abc True None") == "abc True None"
    assert redact.args({"password": None, "token": True}) == {"password": None, "token": True}


def test_the_longer_of_two_secrets_is_hidden_whole():
    assert Redactor({"token": "abcd", "password": "abcdefgh"}).text("abcdefgh") == HIDDEN


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann:hunter2@db/shop", f"postgresql://{HIDDEN}@db/shop"),
        ("see https://example.com/@ann", "see https://example.com/@ann"),
        ("failed with password='hunter2' at once", f"failed with password={HIDDEN} at once"),
        ("Authorization: Bearer abc.def", f"Authorization: {HIDDEN}"),
        ("https://x/?token=abc&page=2", f"https://x/?token={HIDDEN}&page=2"),
    ],
)
def test_secrets_in_addresses_and_texts_are_hidden(text, shown):
    assert Redactor().text(text) == shown


def test_arguments_that_are_no_object_are_shown_as_they_are():
    assert Redactor([1, {"token": "abcd"}]).args(["abcd"]) == [HIDDEN]


def test_values_of_other_kinds_hold_no_secrets_to_look_for():
    redact = Redactor({"password": msgspec.Raw(b"abcdef"), "n": 5})
    assert redact.text("abcdef 5") == "abcdef 5"
