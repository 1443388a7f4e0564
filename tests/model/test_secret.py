from typing import Annotated

import pytest
from pydantic import SecretStr

from drumline.model.codec import ArgsCodec
from drumline.model.secret import Secret, is_secret_type


@pytest.mark.parametrize(
    "annotation", [Annotated[str, Secret], Annotated[str, Secret()], SecretStr, SecretStr | None, list[SecretStr]]
)
def test_a_type_that_is_marked_is_secret(annotation):
    assert is_secret_type(annotation)


@pytest.mark.parametrize("annotation", [str, list[str], Annotated[str, "note"], None, str | None])
def test_other_types_are_not(annotation):
    assert not is_secret_type(annotation)


def test_a_signature_names_its_secret_parameters():
    def call_bank(account: Annotated[str, Secret], amount: int) -> None: ...

    codec = ArgsCodec(call_bank, "call_bank")
    assert codec.signature.secrets == {"account"}
    assert codec.encode(("DE00", 5), {}) == b'{"account":"DE00","amount":5}'
