import struct
from io import BytesIO
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from drumline.errors import BadOption
from drumline.policy.cron import Cron
from drumline.policy.expression import read_expression
from drumline.policy.note import note_change
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
    year = list(islice(stretches(zone("Europe/Berlin"), NEW_YEAR), 3))
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
    found = list(islice(stretches(zone(name), 1_300_000_000), 30))
    assert found[0].start <= 1_300_000_000 < found[0].end
    assert all(one.end == other.start for one, other in pairwise(found))
    changes = [(one, other) for one, other in pairwise(found) if one.offset != other.offset]
    assert all(other.since == other.start and other.before == one.offset for one, other in changes)


def test_there_is_a_first_stretch_and_a_last():
    first = next(stretches(zone("Asia/Tokyo"), -6 * 10**10))
    # 1900-01-01T00:00:00Z.
    assert first.start == -2_208_988_800
    assert list(stretches(zone("Asia/Tokyo"), 253_390_000_000)) == []


def make_zone(change: int, before: int, after: int) -> ZoneInfo:
    """A zone with a single change of its offset (hours), as a TZif file would tell it."""
    head = b"TZif2" + bytes(15)
    kinds = struct.pack(">lbB", before * HOUR, 0, 0) + struct.pack(">lbB", after * HOUR, 0, 0)
    old = head + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + kinds[:6] + b"XXX\0"
    new = head + struct.pack(">6l", 0, 0, 0, 1, 2, 4) + struct.pack(">qB", change, 1) + kinds + b"XXX\0"
    return ZoneInfo.from_file(BytesIO(old + new + f"\nXXX{-after}\n".encode()), "Test/Zone")


def list_minutes(cron: Cron) -> list[int]:
    """The instants near the end of a year, in minutes from it."""
    span = (NEW_YEAR - 2 * HOUR) * 1000, (NEW_YEAR + 2 * HOUR) * 1000
    return [(instant // 1000 - NEW_YEAR) // 60 for instant in cron.between(*span)]


@pytest.mark.parametrize(("runs_twice", "minutes"), [(False, [-75, -45]), (True, [-75, -45, -15, 15])])
def test_a_fold_over_the_end_of_a_year_is_one_fold(runs_twice, minutes):
    # Back by an hour at 21:30.
    where = make_zone(NEW_YEAR - 30 * 60, -2, -3)
    cron = Cron(read_expression("45,15 20-21 31 12 *"), where, runs_after_gap=True, runs_twice=runs_twice)
    assert [minute for minute in list_minutes(cron) if -90 <= minute < 30] == minutes


def test_the_first_of_two_is_known_before_the_end_of_the_year():
    # Back by an hour at 20:30.
    where = make_zone(NEW_YEAR + 30 * 60, -4, -5)
    cron = Cron(read_expression("45 19 * * *"), where, runs_after_gap=True, runs_twice=False)
    assert list_minutes(cron) == [-15]
    assert note_change(cron, (NEW_YEAR - 15 * 60) * 1000) == "happens twice: only the first runs"
