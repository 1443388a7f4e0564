from dataclasses import dataclass
from typing import Annotated, Generic, NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec
import pytest
from pydantic import BaseModel, Field, SecretStr
from typing_extensions import TypeAliasType

from drumline.model.codec import ArgsCodec
from drumline.model.secret import Marks, Secret, is_secret_type, secret_fields

T = TypeVar("T")
Hidden = Annotated[str, Secret]


@dataclass
class Card:
    number: Hidden
    day: int = 1
    other: "Card | None" = None


class Renamed(msgspec.Struct, rename="camel"):
    card_number: Hidden | None
    shown: str


class Loose(TypedDict):
    number: NotRequired[Hidden]
    card: Card


class Model(BaseModel):
    number: Annotated[str, Secret] = Field(alias="cardNumber")
    cards: list[Card] = []


@dataclass
class Box(Generic[T]):
    content: T


class Row(NamedTuple):
    day: int
    number: Hidden


class Line(msgspec.Struct, array_like=True):
    row: Row
    after: "Line | None" = None


class Plain(msgspec.Struct, array_like=True):
    day: int
    after: "Plain | None" = None


@pytest.mark.parametrize(
    "annotation", [Annotated[str, Secret], Annotated[str, Secret()], SecretStr, SecretStr | None, list[SecretStr]]
)
def test_a_type_that_is_marked_is_secret(annotation):
    assert is_secret_type(annotation)


@pytest.mark.parametrize("annotation", [Row, list[Row], Line, TypeAliasType("Pin", Hidden)])
def test_a_type_without_names_in_json_is_secret_as_a_whole(annotation):
    assert is_secret_type(annotation)


@pytest.mark.parametrize("annotation", [str, list[str], Annotated[str, "note"], None, str | None, Card, Plain])
def test_other_types_are_not(annotation):
    assert not is_secret_type(annotation)


def test_a_signature_names_its_secret_parameters():
    def call_bank(account: Annotated[str, Secret], amount: int) -> None: ...

    codec = ArgsCodec(call_bank, "call_bank")
    assert codec.signature.secrets == Marks(parameters=frozenset({"account"}))
    assert codec.encode(("DE00", 5), {}) == b'{"account":"DE00","amount":5}'


@pytest.mark.parametrize(
    ("annotation", "fields"),
    [
        (Card, {"number"}),
        (list[Card], {"number"}),
        (dict[str, Card | None], {"number"}),
        (Annotated[Card, "note"], {"number"}),
        (Box[Card], {"number"}),
        (Renamed, {"cardNumber"}),
        (Loose, {"number"}),
        (Model, {"number", "cardNumber"}),
        (TypeAliasType("Cards", list[Card]), {"number"}),
        (str, set()),
        (list[int], set()),
        (Plain, set()),
    ],
)
def test_marked_fields_are_found_by_their_names_in_json_at_any_depth(annotation, fields):
    assert secret_fields([annotation]) == fields


def test_what_cannot_be_resolved_is_secret_if_it_says_so():
    @dataclass
    class Odd:
        number: "Annotated[Unknown, Secret]"  # type: ignore[name-defined] # noqa: F821
        day: "Unknown"  # type: ignore[name-defined] # noqa: F821

    assert secret_fields([Odd]) == {"number"}


def test_a_signature_names_the_secret_fields_of_its_models():
    def charge(card: Card, spare: Annotated[Renamed, Secret], amount: int) -> None: ...

    marks = ArgsCodec(charge, "charge").signature.secrets
    assert marks == Marks(parameters=frozenset({"spare"}), fields=frozenset({"number"}))
