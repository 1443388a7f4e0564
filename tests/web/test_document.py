"""Whatever is asked of the API, its answer is one that its own OpenAPI document tells of, and never a crash.

schemathesis makes requests of the document, some that fit and some that do not, and compares the answers with it.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.applications import Starlette

from drumline.web import pace, sampler
from drumline.web.api.openapi import describe
from drumline.web.pages import API
from tests.end_to_end.homes import HOMES
from tests.web.served import serving
from tests.web.shop import AUTH, TOKENS, make_shop, work_off

PREFIX = "/admin/jobs"
EXAMPLES = {"sqlite": 100, "memory": 20, "postgres": 20, "redis": 20}
# Who asks is not what is tried here: the roles have a test of their own.
DOCUMENT = {**describe(API), "security": []}
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = {
    f"{method.upper()} {path}": SCHEMA[path][method]
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
INSTANTS = ["2026-01-01T00:00:00Z", "2026-01-01T03:00:00+01:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z"]
JOBS = [f"00000000-0000-7000-8000-00000000000{number}" for number in range(4)]
# What fits what is stored, by the names of fields: without it few requests would come further than the front door.
FITTING: dict[str, list[Any]] = {
    "ids": [JOBS, JOBS[:1]],
    "id": JOBS,
    "task": ["send_mail"],
    "name": ["nightly", "a/b"],
    "args": [{"user_id": 7}],
    "state": ["ready", "done,dead"],
    "queue": ["mail"],
    "at": INSTANTS[:2],
    "start": INSTANTS[:1],
    "end": INSTANTS[1:2],
    "created_from": INSTANTS[:1],
    "created_to": INSTANTS[:1],
    "delay": ["1h", 5],
    "every": ["1h"],
    "cron": ["0 9 * * *"],
    "timezone": ["Europe/Berlin"],
    "timeout": ["1s"],
    "max_attempts": [3],
    "misfire": ["skip"],
    "overlap": ["queue_one"],
    "key": ["once"],
    "key_window": ["1h"],
    "meta": [{"shop": 3}],
    "tags": [["vip"]],
    "tag": ["vip"],
    "priority": [5],
    "schedule": ["tidy"],
    "source": ["manual"],
    "origin": ["http admin"],
    "after": [""],
    "limit": [2],
    "reason": ["because"],
}
# And what lies at an edge of it, or beyond.
EDGES: dict[str, list[Any]] = {
    "task": ["fail", "tidy", "os.system"],
    "name": ["tidy", "pause", "\0"],
    "args": [{}, {"words": "no", "password": "secret"}, {"user_id": 2**80}],
    "queue": ["@private", ""],
    "at": INSTANTS,
    "start": INSTANTS,
    "end": INSTANTS,
    "delay": ["1e400", -1, 1e300, "10000000h"],
    "every": ["0s", 1e-9, 1e300],
    "cron": ["0 0 30 2 *", "@daily", "* * * * * *"],
    "timezone": ["Nowhere/Here", "../etc/passwd"],
    "meta": [{"deep": {"a": [1]}}, '{"shop": 3}'],
    "tags": [["vip", "vip"]],
    "priority": [101, 2**70],
}
IN_THE_PATH = {"id": JOBS, "name": ["tidy", "nightly", "a/b"]}
EDGES_OF_A_PATH = {"name": ["mail", "a%2Fpause", "..%2F..", "%00", "a%0Ab", "%0A"]}


class Place(NamedTuple):
    """Where the API is asked: an address, and how many requests of each operation it shall get."""

    url: str
    examples: int


@pytest.fixture(scope="module", params=list(EXAMPLES))
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A real server before each store in turn, that takes as many actions as come, and ends streams at once."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    home = None if request.param == "memory" else HOMES[request.param](folder)
    drum = make_shop("memory://") if home is None else make_shop(home.url, home.namespace)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with drum:
            await work_off(drum)
            yield

    app = Starlette(lifespan=lifespan)
    drum.install(app, auth=AUTH, role=None)
    with pytest.MonkeyPatch.context() as patch, serving(app) as url:
        patch.setattr(pace, "PER_SECOND", 1e9)
        patch.setattr(sampler, "LONGEST_WATCH", -1.0)
        yield Place(url + PREFIX, EXAMPLES[request.param])


@st.composite
def cases(draw: st.DrawFn, label: str) -> Case[Any]:
    """A request of this operation that fits the document, or does not; as it is, or with values that are likely."""
    case: Case[Any] = draw(OPERATIONS[label].as_strategy(draw(st.sampled_from(GenerationMode))))
    how = draw(st.sampled_from(["as it is", "fitting", "fitting", "at the edges"]))
    if how != "as it is":
        is_fitting = how == "fitting"
        _replace(draw, case.path_parameters, IN_THE_PATH if is_fitting else EDGES_OF_A_PATH)
        for values in (case.query, case.body):
            _replace(draw, values, FITTING if is_fitting else EDGES)
    return case


def _replace(draw: st.DrawFn, values: Any, by: Mapping[str, list[Any]]) -> None:
    if not isinstance(values, dict):
        return
    for name in sorted(values.keys() & by.keys()):
        values[name] = draw(st.sampled_from(by[name]))
    for name in sorted(values.keys() & {"options", "filter"}):
        _replace(draw, values[name], by)


@cache
def make_cases(label: str) -> list[Case[Any]]:
    """The same requests every time, and for every store: to make them takes longer than to ask."""
    made: list[Case[Any]] = []

    @settings(
        max_examples=max(EXAMPLES.values()),
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(label))
    def keep(case: Case[Any]) -> None:
        made.append(case)

    keep()
    return made


@pytest.mark.parametrize("label", OPERATIONS)
def test_every_answer_is_one_that_the_document_tells_of(place: Place, label: str) -> None:
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {TOKENS['admin']}"
        for job_id in JOBS:
            job: dict[str, Any] = {"task": "send_mail", "args": {"user_id": 7}, "options": {"id": job_id}}
            assert session.post(f"{place.url}/api/jobs", json=job).status_code in (200, 201)
        schedule: dict[str, Any] = {"task": "send_mail", "args": {"user_id": 7}, "every": "1h", "name": "nightly"}
        assert session.post(f"{place.url}/api/schedules", json=schedule).status_code == 201
        for case in make_cases(label)[: place.examples]:
            answer = case.call(base_url=place.url, session=session)
            case.validate_response(answer, checks=CHECKS)
