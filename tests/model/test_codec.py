import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from drumline.errors import BadArgument
from drumline.model.codec import ARGS_LIMIT, ArgsCodec
from drumline.model.result import DEPTH_LIMIT

ID = UUID("0199b9b8-0000-7000-8000-000000000000")
NOON = datetime(2026, 5, 5, 12, tzinfo=UTC)
NAN, INFINITY = float("nan"), float("inf")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1


class Mode(StrEnum):
    FAST = "fast"


@dataclass
class Address:
    street: str
    number: int = 1
    tags: set[str] = field(default_factory=set)


@dataclass
class SmallAddress(Address):
    door: str = ""


@dataclass
class Lane:
    street: str


class Point(NamedTuple):
    x: int
    y: int


class Row(TypedDict):
    name: str
    count: NotRequired[int]


class Item(msgspec.Struct):
    sku: UUID
    price: Decimal


class Renamed(msgspec.Struct, rename="camel"):
    first_name: str


class User(BaseModel):
    user_id: int
    joined: datetime | None = None
    address: Address | None = None
    factor: float = 1.0


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date
    pair: tuple[int, int]


class Aliased(BaseModel):
    full_name: str = Field(alias="fullName")
    short: str = Field(default="", validation_alias="shortName")


class Login(BaseModel):
    name: str
    password: SecretStr


class Picky(BaseModel):
    @classmethod
    def model_validate_json(cls, *_: Any, **__: Any) -> "Picky":
        raise ValueError("never content")


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class Real(float):
    pass


class Opaque:
    pass


class Tree(msgspec.Struct):
    children: "list[Tree]" = []


def codec_of(annotation: Any) -> ArgsCodec:
    def task(value): ...

    if annotation is not None:
        task.__annotations__["value"] = annotation
    return ArgsCodec(task, "work")


def travel(annotation: Any, value: Any) -> Any:
    codec = codec_of(annotation)
    args, kwargs = codec.decode(codec.encode((value,), {}))
    assert args == ()
    return kwargs["value"]


def complaint(annotation: Any, value: Any) -> str:
    with pytest.raises(BadArgument) as caught:
        codec_of(annotation).encode((value,), {})
    return str(caught.value).removeprefix("task work: ")


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, "123"),
        (str, ""),
        (str, "null"),
        (str, "\x00\x1b ü 🥁"),
        (int, 2**63),
        (int, -(2**63) - 1),
        (int, 2**64),
        pytest.param(int, 10**4000, id="int-of-4001-digits"),
        (float, 0.1),
        (float, 1e308),
        (bool, True),
        (None, None),
        (type(None), None),
        (list, []),
        (list[int], [1, 2]),
        (dict, {"a": [1, {"b": None}]}),
        (dict[int, str], {1: "a"}),
        (dict[UUID, date], {ID: date(2026, 1, 1)}),
        (tuple, (1, "a")),
        (tuple[int, ...], (1, 2)),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2}),
        (frozenset[str], frozenset("ab")),
        (bytes, b"\x00\xff"),
        (datetime, NOON),
        (datetime, NOON.replace(tzinfo=None, microsecond=123456)),
        (datetime, NOON.astimezone(timezone(timedelta(hours=5, minutes=45)))),
        (date, date(2026, 5, 5)),
        (timedelta, timedelta(days=-1, microseconds=1)),
        (UUID, ID),
        (Decimal, Decimal("12.3400")),
        (Decimal, Decimal("1E+5")),
        (Colour, Colour.RED),
        (Size, Size.SMALL),
        (Mode, Mode.FAST),
        (Address, Address("Elm", 3, {"a"})),
        (Row, {"name": "x", "count": 3}),
        (Row, {"name": "x"}),
        (Item, Item(ID, Decimal("1.50"))),
        (Renamed, Renamed("Ann")),
        (Point, Point(1, 2)),
        (User, User(user_id=2**70, joined=NOON, address=Address("Elm"))),
        (Strict, Strict(day=date(2026, 1, 1), pair=(1, 2))),
        (Aliased, Aliased.model_validate({"fullName": "Ann", "shortName": "A"})),
        (list[User], [User(user_id=1)]),
        (dict[str, Item | None], {"a": Item(ID, Decimal(1)), "b": None}),
        (Address | None, None),
        (int | str | None, "1"),
        (float | int, 3),
        (Literal["a", "b"], "a"),
        (Annotated[int, msgspec.Meta(gt=0)], 3),
        (Any, {"a": [1, 2.5, "x", True, None]}),
        (None, 2**63),
        (Tree, Tree([Tree(), Tree([Tree()])])),
    ],
)
def test_a_value_arrives_as_it_was_sent(annotation, value):
    arrived = travel(annotation, value)
    assert arrived == value
    assert type(arrived) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value", "arrives"),
    [
        (UUID, str(ID), ID),
        (datetime, NOON.isoformat(), NOON),
        (Decimal, 0.1, Decimal("0.1")),
        (Decimal, 3, Decimal(3)),
        (float, 3, 3.0),
        (list[int], (1, 2), [1, 2]),
        (Any, (1, (2,)), [1, [2]]),
        (Iterable[int], (1, 2), [1, 2]),
        (object, "x", "x"),
        (set[int], [1, 1], {1}),
        (set[UUID], {str(ID)}, {ID}),
        (tuple[int, int], [1, 2], (1, 2)),
        (dict[UUID, int], {str(ID): 1}, {ID: 1}),
        (Address, {"street": "Elm"}, Address("Elm")),
        (Address, SmallAddress("Elm", door="2"), Address("Elm")),
        (Renamed, {"firstName": "Ann"}, Renamed("Ann")),
        (User, {"user_id": 1, "joined": NOON}, User(user_id=1, joined=NOON)),
        (Colour, "red", Colour.RED),
        (str, Mode.FAST, "fast"),
        (str, Text("x"), "x"),
        (int, Whole(3), 3),
        (float, Real(0.5), 0.5),
    ],
)
def test_an_annotation_may_ask_for_a_conversion(annotation, value, arrives):
    arrived = travel(annotation, value)
    assert arrived == arrives
    assert type(arrived) is type(arrives)


@pytest.mark.parametrize(
    ("annotation", "value", "says"),
    [
        (int, "42", "value: expected int, got str"),
        (int, None, "value: expected int, got None"),
        (int, True, "value: expected int, got bool"),
        (int, 1.0, "value: expected int, got float"),
        (int, NOON, "value: expected int, got datetime"),
        (int | None, [], "value: expected int | None, got list"),
        (list[int], [1, "2"], "value[1]: expected int, got str"),
        (list[int], {"a": 1}, "value: expected list[int], got dict"),
        (dict[str, int], {"a": "1"}, "value[...]: expected int, got str"),
        (dict[int, int], {"a": 1}, "value[key]: expected int, got str"),
        (tuple[int, int], (1,), "value: expected array of length 2"),
        (Colour, "green", "value: invalid enum value 'green'"),
        (datetime, "noon", "value: invalid RFC3339 encoded datetime"),
        (Annotated[int, msgspec.Meta(gt=0)], 0, "value: expected int >= 1"),
        (Address, Address("Elm", "3"), "value.number: expected int, got str"),  # type: ignore[arg-type]
        (Address, {"number": 3}, "value.street: required, got nothing"),
        (list[Address], [{"street": "Elm", "town": "X"}], "value[0].town: unknown field"),
        (Address, {"street": "Elm", "town": "X"}, "value.town: unknown field"),
        (Address, Point(1, 2), "value: expected Address, got Point"),
        (Address, Lane("Elm"), "value: expected Address, got Lane"),
        (Picky, Picky(), "value: never content"),
        (Address, Item(ID, Decimal(1)), "value.street: required, got nothing"),
        (Address, Renamed("x"), "value.street: required, got nothing"),
        (Row, {"name": "x", "cuont": 3}, "value.cuont: unknown field"),
        (User, {"user_id": "x"}, "value.user_id: input should be a valid integer"),
        (list[User], [User(user_id=1), {}], "value[1].user_id: field required"),
        (User, User.model_construct(user_id="x"), "value.user_id: input should be a valid integer"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_path(annotation, value, says):
    assert complaint(annotation, value).startswith(says)


def test_of_many_faults_of_a_model_the_first_is_told_and_the_rest_are_counted():
    text = complaint(User, {"user_id": "x", "factor": "y"})
    assert text.startswith("value.user_id: input should be a valid integer")
    assert text.endswith(" (and 1 more)")


@pytest.mark.parametrize(
    ("annotation", "value", "says"),
    [
        (str, NOON, "value: expected str, got datetime (it would arrive as text)"),
        (str, b"abc", "value: expected str, got bytes (it would arrive as text)"),
        (list[str], [ID], "value[0]: expected str, got UUID (it would arrive as text)"),
        (set[str], {ID}, "value[0]: expected str, got UUID (it would arrive as text)"),
        (bytes, "abcd", "value: expected bytes, got str"),
        (None, NOON, "value: expected str, got datetime (it would arrive as text)"),
        (None, {1, 2}, "value: expected list, got set (it would arrive as a list)"),
        (None, {"a": Address("Elm")}, "value.a: expected dict, got Address (it would arrive as a dict)"),
        (None, {1: "a"}, "value[1]: expected str as key, got int (it would arrive as text)"),
        (dict, {"a": {"b": Decimal(1)}}, "value.a.b: expected str, got Decimal (it would arrive as text)"),
        (
            Login,
            Login(name="a", password=SecretStr("b")),
            "value.password: a SecretStr hides its value, also from JSON",
        ),
        (
            datetime,
            datetime(1900, 1, 1, tzinfo=timezone(timedelta(minutes=19, seconds=32))),
            "value: the offset of its time zone has seconds, which JSON's instants have not",
        ),
    ],
)
def test_what_would_change_on_its_way_is_refused(annotation, value, says):
    assert complaint(annotation, value) == says


@pytest.mark.parametrize(
    ("annotation", "value", "place"),
    [
        (float, NAN, "value"),
        (float | None, INFINITY, "value"),
        (int, NAN, "value"),
        (None, [1.0, -INFINITY], "value[1]"),
        (dict[str, list[float]], {"a": [NAN]}, "value.a[0]"),
        (User, User(user_id=1, factor=NAN), "value.factor"),
        (set[float], {INFINITY}, "value[0]"),
    ],
)
def test_nan_and_infinity_are_refused(annotation, value, place):
    assert complaint(annotation, value) == f"{place}: NaN and infinity cannot travel as JSON"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Opaque(), "value: values of type Opaque cannot travel as JSON"),
        ([1, {"a": Opaque()}], "value[1].a: values of type Opaque cannot travel as JSON"),
        (iter([1]), "value: values of type list_iterator cannot travel as JSON"),
        ({(1, 2): 3}, "value: a key of it: values of type tuple cannot travel as JSON"),
        pytest.param("\ud800", "value: 'utf-8' codec can't encode character", id="half-a-character"),
        pytest.param(10**5000, "value: exceeds the limit (4300 digits)", id="int-of-5001-digits"),
    ],
)
def test_a_value_that_cannot_be_written_is_named_with_its_type(value, says):
    assert complaint(None, value).startswith(says)


def nest(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_values_nested_in_each_other_are_taken_up_to_the_limit():
    deep = nest(DEPTH_LIMIT - 2)
    assert travel(None, deep) == deep
    assert complaint(None, nest(DEPTH_LIMIT)) == f"the arguments are nested more than {DEPTH_LIMIT} deep"


def test_brackets_inside_a_text_are_no_nesting():
    text = '[{"' * DEPTH_LIMIT
    assert travel(None, [text]) == [text]


@pytest.mark.parametrize("annotation", [None, list])
def test_a_value_that_contains_itself_is_refused(annotation):
    circle: list[Any] = []
    circle.append(circle)
    assert complaint(annotation, circle) == "the arguments are nested too deeply"
    assert complaint(annotation, nest(100_000)) == "the arguments are nested too deeply"


def test_a_complaint_about_deep_values_does_not_end_in_one_about_the_stack():
    for depth in range(100, 1100, 100):
        assert complaint(int, nest(depth)) in ("value: expected int, got list", "the arguments are nested too deeply")


def test_arguments_above_the_limit_are_refused_with_both_sizes():
    fits = "x" * (ARGS_LIMIT - len('{"value":""}'))
    assert travel(str, fits) == fits
    text = complaint(str, fits + "x")
    assert text.startswith("the arguments take 262,145 bytes, the limit is 262,144: ")


def test_pydantic_is_not_needed_where_no_model_is():
    import subprocess

    program = "import sys, drumline.model.codec; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
