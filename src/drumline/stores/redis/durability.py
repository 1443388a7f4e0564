"""How durable the server is, and what of Drumline's promises that weakens."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SETTINGS", "find_weaknesses"]

# What the server is asked for.
SETTINGS = ("appendonly", "appendfsync", "save", "maxmemory", "maxmemory-policy")


def find_weaknesses(facts: Mapping[str, str]) -> list[str]:
    """What may happen to accepted jobs on a server with these settings, worst first, each with its remedy."""
    return [weakness for weakness in (_of_memory(facts), _of_disk(facts)) if weakness]


def _of_memory(facts: Mapping[str, str]) -> str | None:
    policy = facts.get("maxmemory-policy", "noeviction")
    if policy == "noeviction" or facts.get("maxmemory", "0") == "0":
        return None
    return (
        f"when its memory is full it throws keys away (maxmemory-policy {policy}), and jobs with them:"
        " set maxmemory-policy noeviction"
    )


def _of_disk(facts: Mapping[str, str]) -> str | None:
    if facts.get("appendonly") == "yes":
        return {
            "everysec": "a crash may lose the last second (appendfsync everysec): set always if that matters",
            "no": "a crash of the machine may lose the last minute (appendfsync no): set always or everysec",
        }.get(facts.get("appendfsync", ""))
    if facts.get("save"):
        return "a crash loses what came after the last snapshot: set appendonly yes"
    return "it keeps nothing over a restart: set appendonly yes"
