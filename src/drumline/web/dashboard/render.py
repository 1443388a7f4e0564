"""How a page is made of its template: escaped without exception, and complete, or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from drumline.model.plain import clean_lines
from drumline.model.redact import Redactor
from drumline.model.view import instant_text
from drumline.web.dashboard import wording
from drumline.web.dashboard.assets import name_of

__all__ = ["Links", "environment", "fill"]


class Links:
    """Addresses of pages and files below the dashboard's prefix."""

    def __init__(self, base: str) -> None:
        self.base = base

    def page(self, path: str = "", /, **query: object) -> str:
        """The address of a page, with a query of what is given."""
        words = {name: value for name, value in query.items() if value not in (None, "", ())}
        return f"{self.base}/{path}" + (f"?{urlencode(words, doseq=True)}" if words else "")

    def deed(self, action: str, fields: Iterable[tuple[str, object]], back: str) -> str:
        """Where the form of an action is sent. What it is about stands in the address: no byte of it is lost."""
        return f"{self.base}/do/{action}?{urlencode([*fields, ('back', back)])}"

    def job(self, job_id: str) -> str:
        return f"{self.base}/jobs/{quote(job_id, safe='')}"

    def schedule(self, name: str, /, **query: object) -> str:
        return self.page(f"schedules/{quote(name, safe='')}", **query)

    def file(self, name: str) -> str:
        return f"{self.base}/static/{name_of(name)}"


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("drumline.web.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_make_plain,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    for function in (wording.count, wording.cut, wording.plural, wording.relative, wording.span, wording.wall):
        made.filters[function.__name__] = function
    made.filters["redact"] = Redactor().text
    made.filters["replica_name"] = _replica_name
    made.filters["iso"] = instant_text
    made.filters["exact"] = _exact
    return made


def fill(template: str, **values: Any) -> str:
    """The text of the template with these values."""
    return environment().get_template(template).render(**values)


def _make_plain(value: Any) -> Any:
    """Whatever is put into a page is text to be seen: it steers neither the page nor a terminal it is copied to."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean_lines(value)
    return value


def _exact(instant: datetime) -> str:
    """All that is known of an instant, for whoever looks closely."""
    return f"{instant:%-d %b %Y %H:%M:%S}.{instant.microsecond // 1000:03} UTC"


def _replica_name(replica: str | None) -> str:
    """Of `web-1:3f2a`, the part that people gave."""
    return "" if replica is None else replica.rpartition(":")[0] or replica
