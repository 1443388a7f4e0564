"""Whatever is asked of the API, its answer is one that its own OpenAPI document tells of, and never a crash."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drumline.web.api.openapi import describe
from drumline.web.pages import API
from tests.web.browser import Browser, bearer
from tests.web.shop import AUTH, TOKENS, make_shop, serve

DOCUMENT = describe(API)
OPERATIONS = sorted(
    (method, path)
    for path, operations in DOCUMENT["paths"].items()
    for method in operations
    # A stream does not end.
    if path != "/api/events"
)
TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["send_mail", "fail", "tidy", "mail", "default", "1h", "-1", "1e400", "0 9 * * *", "@every", "\0"]),
    st.sampled_from(["2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-14:00", "ready"]),
    st.sampled_from(["00000000-0000-7000-8000-000000000000", "../..", "a/b", "%00", "{}", "[" * 200]),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)


def bodies(operation: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Objects with the fields that are known, most of them of a wrong kind; and anything at all."""
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    name = schema["$ref"].rpartition("/")[2]
    fields = sorted(DOCUMENT["components"]["schemas"][name]["properties"])
    known = st.fixed_dictionaries({}, optional={field: st.one_of(VALUES, likely(field)) for field in fields})
    return st.one_of(known, VALUES)


def likely(field: str) -> st.SearchStrategy[Any]:
    """What fits often enough to come further than the front door."""
    options = ("delay", "at", "queue", "priority", "max_attempts", "timeout", "key", "key_window", "id", "tags", "meta")
    match field:
        case "task":
            return st.sampled_from(["send_mail", "fail", "tidy"])
        case "args":
            return st.dictionaries(st.sampled_from(["user_id", "subject", "words"]), VALUES, max_size=2)
        case "options":
            return st.dictionaries(st.sampled_from(options), VALUES, max_size=3)
        case "filter":
            return st.dictionaries(
                st.sampled_from(["state", "task", "queue", "tag", "meta", "source"]), VALUES, max_size=2
            )
        case _:
            return TEXTS


@st.composite
def requests(draw: st.DrawFn, method: str, path: str) -> tuple[str, bytes]:
    operation = DOCUMENT["paths"][path][method]
    url, query = path, []
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path":
            text = draw(TEXTS.filter(lambda text: text.strip("./") != ""))
            url = url.replace("{" + parameter["name"] + "}", quote(text))
        elif draw(st.booleans()):
            query.append(f"{parameter['name']}={quote(draw(TEXTS | st.integers().map(str)))}")
    body = msgspec.json.encode(draw(bodies(operation))) if "requestBody" in operation and draw(st.booleans()) else b""
    return f"/admin/jobs{url}?{'&'.join(query)}", body


def quote(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))


@pytest.mark.parametrize("store", ["memory://", "sqlite:///shop.db"])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_answer_is_one_that_the_document_tells_of(folder, store, method, path):
    told = set(DOCUMENT["paths"][path][method]["responses"])

    @settings(
        max_examples=100 if store == "memory://" else 20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(requests(method, path))
    def ask(request: tuple[str, bytes]) -> None:
        url, body = request
        # A path may lead to another operation, or to none.
        answer = asyncio.run(_ask(store, method, url, body))
        allowed = told | {"404", "405"}
        assert str(answer.status) in allowed, (answer.status, answer.text, url, body)

    ask()


async def _ask(store: str, method: str, url: str, body: bytes) -> Any:
    drum = make_shop(store)
    browser = Browser(serve(drum, AUTH)).known_as(bearer(TOKENS["admin"]))
    try:
        return await browser.ask(method.upper(), url, body, {"content-type": "application/json"})
    finally:
        await drum.close()
