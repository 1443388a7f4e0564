from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel

from drumline.errors import BadOption
from drumline.model.result import (
    ERROR_LIMIT,
    RESULT_LIMIT,
    cut,
    decode_result,
    encode_result,
    measure_depth,
    plain_object,
)


@dataclass
class Report:
    day: date
    rows: int


class Model(BaseModel):
    size: int


class Opaque:
    def __repr__(self) -> str:
        return "<Opaque \x00>"


class Broken:
    def __repr__(self) -> str:
        raise OSError("no")


class BrokenModel(BaseModel):
    size: int

    def model_dump_json(self, **_: Any) -> str:
        raise KeyError("no")


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (type(None), None),
        (int, 2**70),
        (Report, Report(date(2026, 1, 1), 3)),
        (list[Model], [Model(size=1)]),
        (tuple[UUID, ...], (UUID(int=1),)),
        (Any, {"a": [1, None, "null"]}),
        (Annotated[int, ["a list cannot be hashed"]], 3),
    ],
)
def test_a_result_comes_back_as_annotated(annotation, value):
    data, is_repr = encode_result(value)
    assert not is_repr
    assert decode_result(data, annotation) == value


def test_a_result_that_does_not_fit_its_annotation_comes_back_as_plain_json():
    assert decode_result(b'"x"', int) == "x"
    assert decode_result(b'{"a":[1]}') == {"a": [1]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Opaque(), "<Opaque \\x00>"),
        ([float("nan")], "[nan]"),
        ({"a": None, "b": float("inf")}, "{'a': None, 'b': inf}"),
        (Broken(), "<Broken whose repr failed: OSError>"),
        (BrokenModel(size=1), "BrokenModel(size=1)"),
        pytest.param("\ud800", "'\\ud800'", id="half-a-character"),
    ],
)
def test_a_result_that_cannot_be_written_is_kept_as_its_repr(value, text):
    data, is_repr = encode_result(value)
    assert is_repr
    assert decode_result(data) == text


def test_a_result_that_contains_itself_is_kept_as_its_repr():
    circle: list[Any] = []
    circle.append(circle)
    assert encode_result(circle) == (b'"[[...]]"', True)


def test_a_result_above_the_limit_is_cut_and_says_so():
    fits = "x" * (RESULT_LIMIT - 2)
    assert encode_result(fits) == (f'"{fits}"'.encode(), False)
    data, is_repr = encode_result(fits + "x")
    assert is_repr
    assert len(data) <= RESULT_LIMIT
    assert decode_result(data).startswith('cut: the result takes 1,048,577 bytes, the limit is 1,048,576: "xxx')


def test_a_text_within_the_limit_is_left_as_it_is():
    assert cut("ü" * (ERROR_LIMIT // 2)) == "ü" * (ERROR_LIMIT // 2)


def test_a_long_text_loses_its_middle_and_says_so():
    text = cut("a" * 20_000 + "ü" * 20_000)
    assert len(text.encode()) <= ERROR_LIMIT
    assert text.startswith("aaa")
    assert text.endswith("üüü")
    assert "\n… cut: 60,000 bytes in all …\n" in text


def test_a_cut_never_leaves_half_a_character():
    for limit in range(60, 70):
        assert set(cut("🥁" * 100, limit)) <= set("🥁\n… cut: 400 bytes in all …")
        assert len(cut("🥁" * 100, limit).encode()) <= limit


def test_a_text_is_made_fit_for_every_store():
    assert cut("a\x00b\ud800") == "a\\x00b\\ud800"


def test_an_object_is_kept_as_json_keeps_it():
    assert plain_object({"day": date(2026, 1, 1), "n": (1, 2)}, "meta", 100) == {"day": "2026-01-01", "n": [1, 2]}
    assert plain_object(msgspec.structs.asdict(msgspec.defstruct("S", [("a", int)])(1)), "meta", 100) == {"a": 1}


@pytest.mark.parametrize("value", [None, [1], "a", {"a": "x" * 100}, {"a": object()}, {"a": float("nan")}, {(1,): 2}])
def test_what_is_no_json_object_or_too_large_is_refused(value):
    with pytest.raises(BadOption, match="meta must be a JSON object of at most 100 bytes, got "):
        plain_object(value, "meta", 100)


@pytest.mark.parametrize("value", [{"a": "x\0"}, {"\0": 1}, {"a": [{"b": "\\\0"}]}])
def test_a_nul_in_an_object_is_refused(value):
    with pytest.raises(BadOption, match="meta must be a JSON object without NUL, got "):
        plain_object(value, "meta", 100)


def test_what_only_looks_like_a_nul_in_an_object_is_taken():
    value = {"a": "\\u0000", "b": "\\\\u0000", "c": "u0000"}
    assert plain_object(value, "meta", 100) == value


def test_an_object_nested_too_deeply_is_refused():
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"a": deep}
    with pytest.raises(BadOption, match="meta must be a JSON object"):
        plain_object(deep, "meta", 10_000)


@pytest.mark.parametrize(
    ("text", "depth"), [(b"1", 0), (b"[]", 1), (b'[{"a":[]},[]]', 3), (b'["[[[",{"\\"[":1}]', 2), (b"[[],[],[]]", 2)]
)
def test_depth_counts_brackets_but_not_those_in_texts(text, depth):
    assert measure_depth(text) == depth
