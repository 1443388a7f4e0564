"""A schedule's rule in the words of people: `Every 10 seconds`, `Every day at 09:00, New York`.

An expression that has no short way to be said is shown as it is.
"""

from __future__ import annotations

from datetime import timedelta

from drumline.model.schedule import Coordination, Rule, Schedule
from drumline.policy.expression import ALIASES
from drumline.web.dashboard.wording import join, plural

__all__ = ["city", "say_rule", "say_schedule"]

_UNITS = (("week", 604_800_000), ("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = (
    *("", "January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_ORDINALS = {1: "1st", 2: "2nd", 3: "3rd", 21: "21st", 22: "22nd", 23: "23rd", 31: "31st"}


def say_schedule(schedule: Schedule) -> str:
    """When it fires, and where if that is everywhere."""
    everywhere = ", on each replica" if schedule.coordination is Coordination.PER_REPLICA else ""
    return say_rule(schedule.rule) + everywhere


def say_rule(rule: Rule) -> str:
    if rule.every is not None:
        return f"Every {_say_interval(rule.every)}"
    assert rule.cron is not None
    said = _say_cron(rule.cron)
    if said is None:
        return f"Cron {rule.cron}, {city(rule.timezone)}"
    words, names_time = said
    # Where no hour is named the zone changes nothing that a reader would notice.
    return f"{words}, {city(rule.timezone)}" if names_time else words


def city(timezone: str) -> str:
    """The zone as people call it: `America/New_York` is `New York`."""
    return timezone.rpartition("/")[2].replace("_", " ")


def _say_interval(every: timedelta) -> str:
    millis = every // timedelta(milliseconds=1)
    for word, length in _UNITS:
        if millis % length == 0:
            return _many(millis // length, word)
    return f"{millis / 1000:g} seconds" if millis > 1000 else f"{millis} ms"


def _many(number: int, word: str) -> str:
    return word if number == 1 else plural(number, word)


def _say_cron(expression: str) -> tuple[str, bool] | None:
    """The words, and whether they name a time of the day; None where there are none."""
    fields = ALIASES.get(expression.lower(), expression).split()
    second, minute, hour, day, month, weekday = fields if len(fields) == 6 else ("0", *fields)
    days = _say_days(day, month, weekday)
    if days is None:
        return None
    if (day, month, weekday) == ("*", "*", "*") and (beat := _say_beat(second, minute, hour)):
        return beat, False
    times = _say_times(second, minute, hour)
    return None if times is None else (f"{days} at {times}", True)


def _say_beat(second: str, minute: str, hour: str) -> str | None:
    """What goes on all day long."""
    match second, minute, hour:
        case _, "*", "*" if (step := _step(second)) is not None:
            return f"Every {_many(step, 'second')}"
        case "0", _, "*" if (step := _step(minute)) is not None:
            return f"Every {_many(step, 'minute')}"
        case "0", "0", _ if (step := _step(hour)) is not None:
            return f"Every {_many(step, 'hour')}"
        case "0", _, "*" if (past := _numbers(minute)) is not None:
            return f"Every hour at {join([f':{number:02}' for number in past])}"
        case _:
            return None


def _say_days(day: str, month: str, weekday: str) -> str | None:
    match day, month, weekday:
        case "*", "*", "*":
            return "Every day"
        case "*", "*", _:
            return _say_weekdays(weekday)
        case _, "*", "*" if (days := _numbers(day)) is not None:
            return f"On the {join([_ORDINALS.get(number, f'{number}th') for number in days])} of each month"
        case "L", "*", "*":
            return "On the last day of each month"
        case _, _, "*" if (days := _numbers(day)) is not None and (months := _numbers(month)) is not None:
            if all(1 <= number <= 12 for number in months):
                shown = [f"{number} {_MONTHS[of]}" for of in months for number in days]
                return f"Every year on {join(shown)}"
    return None


def _say_weekdays(field: str) -> str | None:
    text = field.upper()
    for number, name in enumerate(_DAY_NAMES):
        text = text.replace(name, str(number))
    if text == "1-5":
        return "Every weekday"
    if text in ("0,6", "6,0", "6,7", "6-7"):
        return "Every Saturday and Sunday"
    days = _numbers(text)
    if days is None or any(number > 7 for number in days):
        return None
    return f"Every {join([_DAYS[number] for number in days])}"


def _say_times(second: str, minute: str, hour: str) -> str | None:
    seconds, minutes, hours = _numbers(second), _numbers(minute), _numbers(hour)
    if seconds is None or minutes is None or hours is None or len(seconds) * len(minutes) * len(hours) > 4:
        return None
    shown = [f"{h:02}:{m:02}" + (f":{s:02}" if s else "") for h in hours for m in minutes for s in seconds]
    return join(shown)


def _step(field: str) -> int | None:
    """The n of `*/n`; 1 for `*`."""
    if field == "*":
        return 1
    start, slash, step = field.partition("/")
    return int(step) if start == "*" and slash and step.isdecimal() else None


def _numbers(field: str) -> list[int] | None:
    """The numbers of a plain list; None for what is more than that."""
    parts = field.split(",")
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else None
