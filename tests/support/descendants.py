"""The processes that a test has started, and what those have started, but not the servers of other tests."""

import psutil


def direct_children() -> frozenset[int]:
    """The pids of this process's own children."""
    return frozenset(child.pid for child in psutil.Process().children())


def descendants(before: frozenset[int]) -> list[psutil.Process]:
    """Every process below this one, but for those that were there before and what they have started since."""
    found = []
    for child in psutil.Process().children():
        if child.pid in before:
            continue
        found.append(child)
        try:
            found += child.children(recursive=True)
        except psutil.NoSuchProcess:
            continue
    return found
