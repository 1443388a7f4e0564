"""How a soak is judged."""

import pytest

from tests.soak.judge import judge


def series(*values: float) -> list[dict[str, float]]:
    return [{"memory": value} for value in values]


@pytest.mark.parametrize(
    ("values", "is_flat"),
    [
        ((1, 5, 100, 100, 100, 100), True),
        # It goes up and down, as a store does that forgets once a minute.
        ((1, 90, 50, 100, 100, 50), True),
        ((1, 5, 50, 100, 105, 109), True),
        ((1, 5, 50, 100, 105, 112), False),
        ((10, 20, 30, 40, 50, 60), False),
    ],
)
def test_what_ends_higher_than_it_was_grows(values, is_flat):
    (trend,) = judge(series(*values), {"memory": 1.0, "absent": 1.0})
    assert trend.is_flat is is_flat
    assert ("flat" in str(trend)) is is_flat
