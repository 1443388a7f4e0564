from itertools import pairwise

import pytest

from drumline.errors import BadOption
from drumline.policy.zone import stretches, zone

# 2026-01-01T00:00:00Z.
NEW_YEAR = 1_767_225_600
HOUR = 3600


def test_a_zone_is_loaded_once():
    assert zone("Europe/Berlin") is zone("Europe/Berlin")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("europe/berln", "an IANA time zone (did you mean Europe/Berlin?)"),
        ("New_York", "an IANA time zone (did you mean America/New_York?)"),
        ("Mars/Olympus_Mons_Base", "an IANA time zone, such as Europe/Berlin"),
        # A path out of the folder of zones.
        ("../../etc/passwd", "an IANA time zone, such as Europe/Berlin"),
        ("", "an IANA time zone, such as Europe/Berlin"),
    ],
)
def test_an_unknown_zone_is_refused_with_what_was_meant(name, expected):
    with pytest.raises(BadOption) as caught:
        zone(name)
    assert str(caught.value) == f"timezone must be {expected}, got {name!r}"


@pytest.mark.parametrize("name", ["localtime", "posixrules", "Europe"])
def test_what_is_no_zone_or_differs_by_machine_is_refused(name):
    with pytest.raises(BadOption, match="timezone must be an IANA time zone"):
        zone(name)


def test_a_year_of_a_zone_is_its_stretches():
    year = [stretch for stretch, _ in zip(stretches(zone("Europe/Berlin"), NEW_YEAR), range(3), strict=False)]
    march, october = 1_774_746_000, 1_792_890_000
    assert [(stretch.start, stretch.end, stretch.offset) for stretch in year] == [
        (NEW_YEAR, march, HOUR),
        (march, october, 2 * HOUR),
        (october, NEW_YEAR + 365 * 24 * HOUR, HOUR),
    ]
    winter, summer, autumn = year
    assert winter.gap == (NEW_YEAR + HOUR, NEW_YEAR + HOUR)
    assert summer.gap == (march + HOUR, march + 2 * HOUR)
    assert summer.fold == (march + 2 * HOUR, march + 2 * HOUR)
    assert autumn.fold == (october + HOUR, october + 2 * HOUR)


@pytest.mark.parametrize("name", ["UTC", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"])
def test_stretches_follow_one_another_without_a_hole(name):
    found = [stretch for stretch, _ in zip(stretches(zone(name), 1_300_000_000), range(30), strict=False)]
    assert found[0].start <= 1_300_000_000 < found[0].end
    assert all(one.end == other.start and one.offset == other.before for one, other in pairwise(found))


def test_there_is_a_first_stretch_and_a_last():
    first = next(stretches(zone("Asia/Tokyo"), -6 * 10**10))
    # 1900-01-01T00:00:00Z.
    assert first.start == -2_208_988_800
    assert list(stretches(zone("Asia/Tokyo"), 253_390_000_000)) == []
