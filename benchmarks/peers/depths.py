"""At which numbers of waiting jobs the cost of one is measured, and how each is called."""

DEPTHS = (1_000, 100_000, 1_000_000)


def name_depth(depth: int) -> str:
    return f"{depth:,} waiting"
