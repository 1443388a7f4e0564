"""The table of everything that can be asked for: each line names the role that it needs."""

from __future__ import annotations

import logging
import re

from starlette.routing import Mount

from drumline.errors import BadOption
from drumline.web.access import Given, allow_anyone, read_auth
from drumline.web.actuator import ACTUATOR, AT_ROOT
from drumline.web.pages import PAGES
from drumline.web.site import Entry, Site
from drumline.web.tracking import TRACK
from drumline.web.web import Web

__all__ = ["SiteMount", "make_root_site", "make_sites"]

logger = logging.getLogger("drumline.web")


class SiteMount(Mount):
    """A site where it is mounted. It answers every path under its prefix, also one with a line break."""

    def __init__(self, path: str, site: Site) -> None:
        super().__init__(path, site)
        # As Starlette compiles it the dot stops at a line break, and the program would answer in the site's place.
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)


def make_sites(web: Web, auth: Given, *, path: str | None, actuator: str | None, track: str | None) -> dict[str, Site]:
    """The sites by their prefixes, one that lies under another before that one; a prefix that is None has none."""
    ways = read_auth(auth)
    if auth is allow_anyone:
        logger.warning("auth=allow_anyone: whoever reaches these pages may do everything")
    tables: dict[str, tuple[str | None, tuple[Entry, ...]]] = {
        "path": (path, PAGES),
        "actuator": (actuator, ACTUATOR),
        "track": (track, TRACK),
    }
    sites: dict[str, Site] = {}
    for option, (prefix, entries) in tables.items():
        if prefix is None:
            continue
        if prefix in sites:
            raise BadOption(option, "a path of its own, for path, actuator and track are three sites", prefix)
        sites[_read_prefix(prefix, option)] = Site(web, entries, ways)
    return dict(sorted(sites.items(), reverse=True))


def make_root_site(web: Web, auth: Given) -> Site:
    """What a process that is ours alone serves at the root too."""
    return Site(web, AT_ROOT, read_auth(auth))


def _read_prefix(given: str, option: str) -> str:
    if not given.startswith("/") or given.endswith("/") or "{" in given:
        raise BadOption(option, "a path that begins and does not end with a slash, such as /admin/jobs", given)
    return given
