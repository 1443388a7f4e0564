"""What a test needs from the machine."""

import os
from typing import NoReturn

import pytest

# Set to `all` where a test that lacks what it needs has to fail.
REQUIRE = "DRUMLINE_TEST_REQUIRE"


def give_up(reason: str) -> NoReturn:
    """Skip, on a machine that lacks something; fail where all has to run."""
    if os.environ.get(REQUIRE) == "all":
        pytest.fail(reason)
    pytest.skip(reason)
