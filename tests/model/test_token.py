import pytest

from drumline.model.token import make_token, read_token

JOB = "0198c0de-0000-7000-8000-000000000001"


def test_a_token_leads_back_to_its_job():
    token = make_token(b"key", JOB)
    assert (read_token(b"key", token), len(token)) == (JOB, 43)
    assert JOB.replace("-", "") not in token


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1], lambda t: t + "A", lambda t: "B" + t[1:], lambda t: "é", lambda t: ""]
)
def test_a_token_that_was_touched_leads_nowhere(change):
    assert read_token(b"key", change(make_token(b"key", JOB))) is None


def test_a_token_has_one_form_only():
    token = make_token(b"key", JOB)
    twins = [token[:-1] + last for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"]
    assert [twin for twin in twins if read_token(b"key", twin)] == [token]


def test_another_key_makes_another_token():
    assert read_token(b"other", make_token(b"key", JOB)) is None
