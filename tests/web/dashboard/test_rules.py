from datetime import timedelta

import pytest

from drumline.model.schedule import Coordination, Rule, Schedule
from drumline.web.dashboard.rules import say_rule, say_schedule


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "Every second"),
        (10, "Every 10 seconds"),
        (60, "Every minute"),
        (300, "Every 5 minutes"),
        (90, "Every 90 seconds"),
        (3600, "Every hour"),
        (86400, "Every day"),
        (7 * 86400, "Every week"),
        (1.5, "Every 1.5 seconds"),
        (0.25, "Every 250 ms"),
    ],
)
def test_an_interval_in_words(seconds, words):
    assert say_rule(Rule(every=timedelta(seconds=seconds))) == words


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        ("* * * * *", "UTC", "Every minute"),
        ("*/5 * * * *", "UTC", "Every 5 minutes"),
        ("*/5 * * * * *", "Europe/Berlin", "Every 5 seconds"),
        ("0 * * * *", "UTC", "Every hour"),
        ("0 */6 * * *", "UTC", "Every 6 hours"),
        ("15,45 * * * *", "UTC", "Every hour at :15 and :45"),
        ("0 9 * * *", "America/New_York", "Every day at 09:00, New York"),
        ("@daily", "UTC", "Every day at 00:00, UTC"),
        ("30 8,17 * * 1-5", "Europe/Berlin", "Every weekday at 08:30 and 17:30, Berlin"),
        ("0 9 * * MON,THU", "UTC", "Every Monday and Thursday at 09:00, UTC"),
        ("0 9 * * 7", "UTC", "Every Sunday at 09:00, UTC"),
        ("0 10 * * 6,0", "UTC", "Every Saturday and Sunday at 10:00, UTC"),
        ("0 0 1 * *", "UTC", "On the 1st of each month at 00:00, UTC"),
        ("0 0 L * *", "UTC", "On the last day of each month at 00:00, UTC"),
        ("0 0 24 12 *", "UTC", "Every year on 24 December at 00:00, UTC"),
        ("5 0 9 * * *", "UTC", "Every day at 09:00:05, UTC"),
        ("0 9 * * 5#2", "UTC", "Cron 0 9 * * 5#2, UTC"),
        ("0 9-17 * * *", "UTC", "Cron 0 9-17 * * *, UTC"),
        ("0 9 1 * 1", "UTC", "Cron 0 9 1 * 1, UTC"),
    ],
)
def test_a_cron_expression_in_words_or_as_it_is(cron, zone, words):
    assert say_rule(Rule(cron=cron, timezone=zone)) == words


def test_a_schedule_of_each_replica_says_so():
    schedule = Schedule(
        name="warm", task="warm", rule=Rule(every=timedelta(minutes=1)), coordination=Coordination.PER_REPLICA
    )
    assert say_schedule(schedule) == "Every minute, on each replica"
