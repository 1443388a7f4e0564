"""The fixtures for pytest: `drumline_harness`, over a `drumline_app` that the test suite defines.

Pytest imports this module at the start of every run, by its entry point; nothing else here imports pytest.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from drumline.app import Drumline
    from drumline.testing.harness import AsyncHarness, Harness


@pytest.fixture
def drumline_app() -> Drumline:
    """The Drumline under test. A suite that uses `drumline_harness` defines its own, in conftest.py."""
    pytest.fail("define a fixture drumline_app that returns your Drumline, for example in conftest.py", pytrace=False)


@pytest.fixture
def drumline_harness(request: pytest.FixtureRequest, drumline_app: Drumline) -> Iterator[Harness | AsyncHarness]:
    """A harness around `drumline_app`; where the test is async, one that is awaited."""
    from drumline.testing.harness import harness, lend

    is_async = inspect.iscoroutinefunction(request.function)
    with lend(drumline_app) if is_async else harness(drumline_app) as opened:
        yield opened
