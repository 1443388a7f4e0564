from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.support.makers import Maker, chosen
from tests.support.rig import Rig, new_rig

# To know only that there is a counter-example: finding the smallest one takes most of the time.
settings.register_profile("first", phases=[Phase.generate])


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
