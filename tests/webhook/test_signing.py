import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest

from drumline.webhook.signing import check_signature, sign

NOW = datetime(2026, 5, 5, 14, tzinfo=UTC)
SECRET = "a secret of sixteen"
BODY = b'{"id":"1"}'


def test_the_signature_is_what_is_documented():
    seconds = int(NOW.timestamp())
    made = hmac.new(SECRET.encode(), f"{seconds}.".encode() + BODY, hashlib.sha256).hexdigest()
    assert sign(SECRET, BODY, NOW) == f"t={seconds},v1={made}"


def test_a_signature_holds_for_its_body_and_secret_and_for_a_while():
    header = sign(SECRET, BODY, NOW)
    assert check_signature(SECRET, header, BODY, now=NOW + timedelta(minutes=4))
    assert not check_signature(SECRET, header, BODY + b" ", now=NOW)
    assert not check_signature("another secret of ours", header, BODY, now=NOW)
    assert not check_signature(SECRET, header, BODY, now=NOW + timedelta(minutes=6))
    assert not check_signature(SECRET, header, BODY, now=NOW - timedelta(minutes=6))
    assert not check_signature(SECRET, header.replace("t=1", "t=2", 1), BODY, now=NOW)


@pytest.mark.parametrize("header", ["", "t=,v1=", "v1=00", "t=1,v1=zz", f"t={'9' * 40},v1={'0' * 64}"])
def test_a_header_of_another_form_is_no_signature(header):
    assert not check_signature(SECRET, header, BODY, now=NOW)
