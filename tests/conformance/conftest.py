from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.support.makers import Maker, chosen
from tests.support.rig import Rig, new_rig

# To know only that there is a counter-example: finding the smallest one takes most of the time.
settings.register_profile("first", phases=[Phase.generate])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of what none of the chosen stores offers are left out; they are not there, rather than skipped."""
    absent = [
        item
        for item in items
        if any("empty parameter set" in mark.kwargs.get("reason", "") for mark in item.iter_markers("skip"))
    ]
    if absent:
        config.hook.pytest_deselected(items=absent)
        items[:] = [item for item in items if item not in absent]


@pytest.fixture(params=chosen(), ids=lambda maker: maker.name)
def maker(request: pytest.FixtureRequest) -> Maker:
    """Each store in turn."""
    found: Maker = request.param
    return found


@pytest.fixture
def rig(maker: Maker, tmp_path: Path) -> Iterator[Rig]:
    """Each store in turn, fresh and empty."""
    with new_rig(maker, tmp_path) as made:
        yield made
