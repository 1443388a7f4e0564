"""What Postgres does for an operation: each statement is explained as it is run, and then undone."""

from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg

from drumline.stores.postgres.connect import Place
from drumline.stores.statements import Operation, Statement

GROWING = ("job", "history", "log", "tick", "tag", "key", "audit", "flow", "token")


class Plan:
    """What was done for one statement."""

    def __init__(self, sql: str, found: dict[str, Any]) -> None:
        self.sql = sql
        self.millis: float = found["Execution Time"]
        self.nodes = list(_walk(found["Plan"]))

    def scans(self, *tables: str) -> list[dict[str, Any]]:
        """The scans of these tables; of all that grow, if none is named."""
        return [node for node in self.nodes if node.get("Relation Name") in (tables or GROWING) and _is_scan(node)]

    def rows_read(self, *tables: str) -> int:
        """How many rows of these tables were looked at."""
        return sum(
            node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
            for node in self.scans(*tables)
        )

    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.nodes if "Index Name" in node}

    def whole_scans(self) -> list[str]:
        """The tables that have grown and were read from end to end."""
        names = {node["Relation Name"] for node in self.scans() if node["Node Type"] == "Seq Scan"}
        return [name for name in sorted(names) if self.rows_read(name)]


def explain(
    connection: psycopg.Connection, place: Place, operation: Operation[Any], begin: LiteralString = "begin"
) -> list[Plan]:
    """Run the operation in a transaction that begins so, and undo it; the plans of its statements."""
    plans: list[Plan] = []
    cursor = connection.cursor()
    cursor.execute(begin)
    answer: Any = None
    try:
        while True:
            asked = operation.send(answer)
            assert isinstance(asked, Statement)
            sql = place.bind(asked.sql)
            cursor.execute("savepoint before")
            cursor.execute(f"explain (analyze, format json) {sql}", asked.params)
            ((found,),) = cursor.fetchall()
            plans.append(Plan(asked.sql, found[0]))
            cursor.execute("rollback to before")
            cursor.execute(sql, asked.params)
            answer = cursor.fetchall() if cursor.description is not None else []
    except StopIteration:
        return plans
    finally:
        cursor.execute("rollback")


def _is_scan(node: dict[str, Any]) -> bool:
    return "Scan" in str(node["Node Type"])


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", ()):
        yield from _walk(inner)
