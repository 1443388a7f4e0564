"""Operations without I/O: generators that yield statements and receive what came of them.

An operation is written once. Whoever has a connection drives it: the store's own threads, or `enqueue` on the
caller's connection.

    def count(name: str) -> Operation[int]:
        rows = yield Statement("select count(*) from job where task = :task", {"task": name})
        return rows[0][0]
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

__all__ = ["Many", "Operation", "Row", "Statement", "in_turn", "run"]

T = TypeVar("T")

Row = tuple[Any, ...]


class Statement(NamedTuple):
    """One statement; answered with its rows, if it has any."""

    sql: str
    params: Mapping[str, Any] = {}


class Many(NamedTuple):
    """One statement for each of many sets of parameters; answered with the number of rows that all of them changed."""

    sql: str
    rows: Sequence[Mapping[str, Any]]


# What is sent back is the answer to what was yielded: rows, or for `Many` a number.
Operation = Generator[Statement | Many, Any, T]


class Cursor(Protocol):
    """What the driver below needs of a DB-API cursor."""

    @property
    def description(self) -> Any: ...

    @property
    def rowcount(self) -> int: ...

    def execute(self, sql: str, params: Any, /) -> Any: ...

    def executemany(self, sql: str, rows: Any, /) -> Any: ...

    def fetchall(self) -> list[Any]: ...


def in_turn(operations: Iterable[Operation[T]]) -> Operation[list[T]]:
    """One operation made of several, each begun when the one before has ended."""
    answers: list[T] = []
    for operation in operations:
        answer = yield from operation
        answers.append(answer)
    return answers


def run(cursor: Cursor, operation: Operation[T]) -> T:
    """Drive the operation to its end, blocking this thread."""
    answer: Any = None
    try:
        while True:
            asked = operation.send(answer)
            if isinstance(asked, Statement):
                cursor.execute(asked.sql, asked.params)
                answer = cursor.fetchall() if cursor.description is not None else []
            else:
                cursor.executemany(asked.sql, asked.rows)
                answer = cursor.rowcount
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        operation.close()
