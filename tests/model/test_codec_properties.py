"""Whatever a task may take arrives as it was sent."""

import types
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, TypedDict
from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from drumline.errors import BadArgument
from drumline.model.codec import ArgsCodec
from drumline.model.result import decode_result, encode_result


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Address:
    street: str
    number: int


class Item(msgspec.Struct, frozen=True):
    sku: UUID
    price: Decimal


class Row(TypedDict):
    name: str
    day: date


class User(BaseModel):
    user_id: int
    names: list[str]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)
LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, texts),
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (bytes, st.binary(max_size=20)),
    (datetime, st.datetimes(timezones=st.none() | st.just(UTC) | zones)),
    (date, st.dates()),
    (timedelta, st.timedeltas()),
    (UUID, st.uuids()),
    (Decimal, st.decimals(allow_nan=False)),
    (Colour, st.sampled_from(Colour)),
    (Address, st.builds(Address, texts, st.integers())),
    (Item, st.builds(Item, st.uuids(), st.decimals(allow_nan=False, allow_infinity=False))),
    (Row, st.fixed_dictionaries({"name": texts, "day": st.dates()})),
    (User, st.builds(User, user_id=st.integers(), names=st.lists(texts, max_size=3))),
    (Any, plain),
]
KEYS = [leaf for leaf in LEAVES if leaf[0] in (str, int, UUID, date)]
HASHABLE = [leaf for leaf in LEAVES if leaf[0] not in (Row, User, Any)]


@st.composite
def typed_values(draw: st.DrawFn, depth: int = 3) -> tuple[Any, Any]:
    """An annotation, and a value of it."""
    shape = draw(st.sampled_from(["leaf", "list", "tuple", "set", "dict", "optional"])) if depth else "leaf"
    if shape == "set":
        kind, values = draw(st.sampled_from(HASHABLE))
        return types.GenericAlias(set, (kind,)), draw(st.sets(values, max_size=3))
    if shape == "leaf":
        kind, values = draw(st.sampled_from(LEAVES))
        return kind, draw(values)
    kind, value = draw(typed_values(depth - 1))
    if shape == "list":
        return types.GenericAlias(list, (kind,)), [value] * draw(st.integers(0, 2))
    if shape == "tuple":
        return types.GenericAlias(tuple, (kind, int)), (value, draw(st.integers()))
    if shape == "dict":
        key, keys = draw(st.sampled_from(KEYS))
        return types.GenericAlias(dict, (key, kind)), dict.fromkeys(draw(st.sets(keys, max_size=2)), value)
    return kind | None, draw(st.sampled_from([value, None]))


def codec_of(annotation: Any) -> ArgsCodec:
    def task(value): ...

    task.__annotations__["value"] = annotation
    return ArgsCodec(task, "work")


@given(typed_values())
def test_an_argument_arrives_as_it_was_sent(typed):
    annotation, value = typed
    codec = codec_of(annotation)
    _, kwargs = codec.decode(codec.encode((value,), {}))
    assert kwargs == {"value": value}
    assert type(kwargs["value"]) is type(value)


@given(typed_values())
def test_a_result_comes_back_as_it_was_returned(typed):
    annotation, value = typed
    data, is_repr = encode_result(value)
    assert not is_repr
    assert decode_result(data, annotation) == value


@given(typed_values(), typed_values())
def test_any_value_for_any_annotation_is_carried_or_refused(one, other):
    codec = codec_of(one[0])
    with suppress(BadArgument):
        codec.decode(codec.encode((other[1],), {}))


@given(st.binary(max_size=60) | texts)
def test_any_text_is_accepted_as_json_or_refused(payload):
    with suppress(BadArgument):
        codec_of(Any).accept(payload)
