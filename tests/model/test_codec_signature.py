import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from drumline.errors import BadArgument, BadOption
from drumline.model.codec import ARGS_LIMIT, ArgsCodec
from drumline.model.context import Context


class Pairs(Enum):
    ONE = (1, 1)


class Opaque:
    pass


@dataclass
class Order:
    order_id: int
    note: str = ""


@dataclass
class Nested:
    nested: int


class Message(BaseModel):
    text: str
    size: int = 1


def welcome(user_id: int, name: str = "you", *, loud: bool = False) -> None: ...


def mixed(a: int, /, b: int = 2, *rest: int, c: int = 3, **more: date) -> None: ...


def only_by_position(a: int = 1, b: int = 2, /) -> None: ...


def with_context(ctx: Context, user_id: int) -> None: ...


def with_text_context(ctx: "Context", user_id: "int") -> None: ...


def with_optional_context(ctx: Context | None, user_id: int) -> None: ...


def with_hidden_context(ctx: "drumline.Context", user_id: int) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def with_only_context(ctx: Context) -> None: ...


def place_order(payload: Order) -> None: ...


def send(message: Message) -> None: ...


def keep(nested: Nested) -> None: ...


def codec_of(function: Callable[..., Any]) -> ArgsCodec:
    return ArgsCodec(function, "work")


def complaint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(BadArgument) as caught:
        codec_of(function).encode(args, kwargs)
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "stored"),
    [
        (welcome, (1,), {}, b'{"user_id":1}'),
        (welcome, (), {"user_id": 1}, b'{"user_id":1}'),
        (welcome, (1, "Ann"), {"loud": True}, b'{"user_id":1,"name":"Ann","loud":true}'),
        (mixed, (1,), {}, b'{"a":1}'),
        (mixed, (1, 2, 3, 4), {"d": date(2026, 1, 1)}, b'{"a":1,"b":2,"rest":[3,4],"d":"2026-01-01"}'),
        (with_context, (1,), {}, b'{"user_id":1}'),
        (with_only_context, (), {}, b"{}"),
    ],
)
def test_arguments_are_stored_by_name_and_defaults_are_not(function, args, kwargs, stored):
    assert codec_of(function).encode(args, kwargs) == stored


@pytest.mark.parametrize(
    ("function", "stored", "called_with"),
    [
        (welcome, b'{"user_id":1}', ((), {"user_id": 1})),
        (welcome, b'{"user_id":1,"since":2}', ((), {"user_id": 1})),
        (mixed, b'{"a":1}', ((1,), {})),
        (mixed, b'{"a":1,"b":2,"rest":[3,4],"d":"2026-01-01"}', ((1, 2, 3, 4), {"d": date(2026, 1, 1)})),
        (mixed, b'{"a":1,"rest":[3]}', ((1, 2, 3), {})),
        (mixed, b'{"a":1,"b":5}', ((1,), {"b": 5})),
        (only_by_position, b'{"b":5}', ((1, 5), {})),
    ],
)
def test_stored_arguments_are_read_as_the_function_takes_them(function, stored, called_with):
    assert codec_of(function).decode(stored) == called_with


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "says"),
    [
        (welcome, (), {}, "task work: user_id: expected int, got nothing"),
        (welcome, (), {"user_id": "x"}, "task work: user_id: expected int, got str"),
        (welcome, (1,), {"nmae": "x"}, "task work: nmae: unknown argument; it takes user_id, name, loud"),
        (welcome, (1, "a", True), {}, "task work: takes at most 2 by position, got 3"),
        (welcome, (1,), {"user_id": 1}, "task work: user_id: given twice"),
        (with_only_context, (), {"a": 1}, "task work: a: unknown argument; it takes none"),
        (mixed, (1,), {"d": "soon"}, "task work: d: invalid RFC3339 encoded date"),
        (mixed, (1, 2, "x"), {}, "task work: rest[0]: expected int, got str"),
        (mixed, (), {"d": date(2026, 1, 1)}, "task work: a: expected int, got nothing"),
    ],
)
def test_a_call_that_does_not_fit_the_signature_is_refused(function, args, kwargs, says):
    assert complaint(function, *args, **kwargs) == says


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        (b'{"user_id":"x"}', "task work: user_id: expected int, got str"),
        (b'{"user_id":null}', "task work: user_id: expected int, got None"),
        (b"{}", "task work: user_id: required, got nothing"),
        (b"[]", "task work: expected dict, got list"),
        (b'{"user_id":', "task work: input data was truncated"),
    ],
)
def test_stored_arguments_of_another_shape_are_refused(stored, says):
    with pytest.raises(BadArgument) as caught:
        codec_of(welcome).decode(stored)
    assert str(caught.value) == says


@pytest.mark.parametrize(
    "function", [with_context, with_text_context, with_optional_context, with_hidden_context, with_only_context]
)
def test_a_first_parameter_of_type_context_is_given_and_not_sent(function):
    signature = codec_of(function).signature
    assert signature.takes_context
    assert [parameter.name for parameter in signature.parameters] in (["user_id"], [])


def test_a_list_of_contexts_is_no_context():
    def work(contexts: list[Context]) -> None: ...

    with pytest.raises(BadOption, match="parameter contexts must be the first one"):
        codec_of(work)


def test_a_context_anywhere_else_is_refused():
    def second(a: int, ctx: Context) -> None: ...
    def by_name(*, ctx: Context) -> None: ...

    with pytest.raises(BadOption, match="task work: parameter ctx must be the first one, by position"):
        codec_of(second)
    with pytest.raises(BadOption, match="task work: parameter ctx must be given by position"):
        codec_of(by_name)


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        (Opaque, "parameter value must be of a type that can travel as JSON, got 'Opaque'"),
        (list[Opaque], "parameter value must be of a type that can travel as JSON"),
        (UUID | str, "Type unions may not contain more than one str-like type"),
        (Pairs, "Enums must contain either all str or all int values"),
        ("3 +", "parameter value must be of a type that JSON can carry"),
        ("Nowhere", None),
    ],
)
def test_a_required_parameter_that_cannot_be_sent_is_refused_at_declaration(annotation, says):
    def work(value): ...

    work.__annotations__["value"] = annotation
    if says is None:
        codec_of(work)
    else:
        with pytest.raises(BadOption, match="task work: ") as caught:
            codec_of(work)
        assert says in str(caught.value)


def test_a_parameter_with_a_default_may_be_of_any_type_and_is_refused_only_when_sent():
    def work(user_id: int, client: Opaque | None = None) -> None: ...

    codec = codec_of(work)
    assert codec.encode((1,), {}) == b'{"user_id":1}'
    with pytest.raises(BadArgument, match="task work: client: values of type Opaque cannot travel as JSON"):
        codec.encode((1, Opaque()), {})
    with pytest.raises(BadArgument, match="task work: client: values of type Opaque cannot travel as JSON"):
        codec.encode((1, "x"), {})


def test_a_name_that_is_defined_later_is_found_at_the_first_use():
    def work(value: "Later") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    codec = ArgsCodec(work, "work")
    with pytest.raises(BadOption, match="task work: parameter value must be annotated with names that are defined"):
        codec.encode((1,), {})
    globals()["Later"] = int
    try:
        assert codec.encode((1,), {}) == b'{"value":1}'
        assert codec.signature.parameters[0].annotation is int
    finally:
        del globals()["Later"]


def test_names_may_come_from_the_scope_of_the_declaration():
    @dataclass
    class Local:
        day: date

    def work(value: "list[Local]") -> None: ...

    codec = ArgsCodec(work, "work", {"Local": Local})
    assert codec.decode(codec.encode(([Local(date(2026, 1, 1))],), {})) == ((), {"value": [Local(date(2026, 1, 1))]})


def test_partials_methods_and_callable_objects_have_signatures_too():
    class Worker:
        def run(self, user_id: int) -> None: ...

        def __call__(self, user_id: int) -> None: ...

    for function in (Worker().run, Worker(), functools.partial(welcome, name="x")):
        assert codec_of(function).encode((1,), {}) == b'{"user_id":1}'


def test_a_callable_without_a_signature_is_refused():
    with pytest.raises(BadOption, match="task work: function must be one whose signature can be read"):
        codec_of(dict)


@pytest.mark.parametrize(
    ("annotation", "returns"),
    [(int, int), ("int | None", int | None), (Opaque, Any), ("Nowhere", Any), ("3 +", Any), (UUID | str, Any)],
)
def test_a_return_annotation_that_cannot_be_read_back_counts_as_none(annotation, returns):
    def work(): ...

    assert codec_of(work).signature.returns is Any
    work.__annotations__["return"] = annotation
    assert codec_of(work).signature.returns == returns


@pytest.mark.parametrize(
    ("function", "kwargs", "called_with"),
    [
        (place_order, {"payload": Order(1)}, {"payload": Order(1)}),
        (place_order, {"payload": {"order_id": 1}}, {"payload": Order(1)}),
        (place_order, {"order_id": 1, "note": "x"}, {"payload": Order(1, "x")}),
        (send, {"text": "hi"}, {"message": Message(text="hi")}),
        (keep, {"nested": {"nested": 1}}, {"nested": Nested(1)}),
        (keep, {"nested": 1}, {"nested": Nested(1)}),
    ],
)
def test_the_fields_of_an_only_model_may_be_sent_as_the_whole_payload(function, kwargs, called_with):
    codec = codec_of(function)
    assert codec.decode(codec.encode((), kwargs)) == ((), called_with)


@pytest.mark.parametrize(
    ("function", "kwargs", "says"),
    [
        (place_order, {}, "task work: payload.order_id: required, got nothing"),
        (place_order, {"order_id": 1, "nope": 2}, "task work: payload.nope: unknown field"),
        (place_order, {"order_id": "x"}, "task work: payload.order_id: expected int, got str"),
        (place_order, {"payload": Order(1), "x": 1}, "task work: x: unknown argument; it takes payload"),
        (keep, {"nested": "x"}, "task work: nested: expected Nested, got str"),
    ],
)
def test_a_bad_field_of_an_only_model_is_named(function, kwargs, says):
    assert complaint(function, **kwargs) == says


@pytest.mark.parametrize(
    ("function", "payload", "called_with"),
    [
        (welcome, '{"user_id": 1}', {"user_id": 1}),
        (place_order, b'{"order_id": 1}', {"payload": Order(1)}),
        (place_order, b'{"payload": {"order_id": 1}}', {"payload": Order(1)}),
    ],
)
def test_arguments_may_come_as_json(function, payload, called_with):
    codec = codec_of(function)
    assert codec.decode(codec.accept(payload)) == ((), called_with)


def test_json_says_bytes_sets_and_instants_in_text():
    def work(data: bytes, ids: set[UUID], at: datetime, counts: dict[int, int]) -> None: ...

    text = f'{{"data": "AAE=", "ids": ["{UUID(int=1)}"], "at": "2026-05-05T12:00:00Z", "counts": {{"1": 2}}}}'
    codec = codec_of(work)
    _, kwargs = codec.decode(codec.accept(text))
    assert kwargs["data"] == b"\x00\x01"
    assert kwargs["counts"] == {1: 2}


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ("[1]", "task work: expected a JSON object of arguments, got list"),
        ("{", "task work: the arguments are not JSON: input data was truncated"),
        ('{"payload": NaN}', "task work: the arguments are not JSON: "),
        ("{payload: 1}", "task work: the arguments are not JSON: JSON is malformed: object keys must be strings"),
        pytest.param("\ud800", "task work: the arguments are not JSON: ", id="half-a-character"),
        pytest.param("[" * 100_000, "task work: the arguments are not JSON: maximum recursion", id="deep"),
        ('{"payload": {"order_id": 1, "nope": 2}}', "task work: payload.nope: unknown field"),
        ('{"order_id": 1, "nope": 2}', "task work: payload.nope: unknown field"),
        pytest.param(f'{{"note": "{"x" * ARGS_LIMIT}"}}', "task work: the arguments take 262,156 bytes", id="large"),
    ],
)
def test_json_that_does_not_fit_is_refused(payload, says):
    with pytest.raises(BadArgument) as caught:
        codec_of(place_order).accept(payload)
    assert str(caught.value).startswith(says)
