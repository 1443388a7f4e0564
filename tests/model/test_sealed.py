import pytest

from drumline.model.sealed import Scope, body_text, find_fault, is_sealed, is_spoiled, join, read_body, split, spoil

BODY = join("k1", Scope.JOB, "AAAA")


def test_a_sealed_body_is_a_text_that_tells_its_parts():
    assert split(BODY) == ("k1", "j", b"AAAA")
    assert is_sealed(BODY)
    assert not is_spoiled(BODY)


@pytest.mark.parametrize("body", [b"{}", b'{"drumline:sealed:1:":1}', b'"sealed"', b"null", b"[1]"])
def test_a_body_in_clear_is_read_as_it_is(body):
    assert not is_sealed(body)
    assert find_fault(body) == ""
    assert not isinstance(read_body(body), str) or read_body(body) == "sealed"


def test_what_cannot_be_read_is_shown_as_a_word():
    assert read_body(BODY) == "encrypted"
    assert read_body(spoil(BODY)) == "encrypted, and not what was written"


def test_the_fault_names_the_key_and_no_more():
    assert find_fault(BODY) == "encrypted with key k1, which is not in the key ring of this process"
    assert "key k1, and no longer what was written" in find_fault(spoil(BODY))


@pytest.mark.parametrize("body", [b'"drumline:sealed:1:"', b'"drumline:sealed:1:k', b'"drumline:sealed:1:\xff:j:x"'])
def test_a_mutilated_body_is_still_told_apart(body):
    assert is_sealed(body)
    assert read_body(body) == "encrypted"
    assert is_spoiled(spoil(body))


def test_a_body_as_a_text_is_as_it_stands_or_a_word():
    assert body_text(b'{ "a":1 }') == '{ "a":1 }'
    assert body_text(BODY) == "encrypted"
    assert body_text(spoil(BODY)) == "encrypted, and not what was written"
