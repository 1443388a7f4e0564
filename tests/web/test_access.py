import asyncio
import hashlib

import pytest
from starlette.requests import Request

from drumline.errors import BadOption
from drumline.web import Basic, Bearer, User, UserRole, access, allow_anyone, hash_password
from drumline.web.access import PrivateAddress
from drumline.web.guard import HEADERS
from drumline.web.passwords import is_password
from tests.web.browser import Browser, basic, bearer
from tests.web.shop import AUTH, TOKENS, serve

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="session")
def hashed() -> str:
    return hash_password("correct horse")


async def test_a_hash_knows_its_password_and_no_other(hashed):
    assert is_password("correct horse", hashed)
    assert not is_password("correct mule", hashed)
    assert "correct" not in hashed


async def test_two_hashes_of_one_password_differ(hashed):
    assert hash_password("correct horse") != hashed


async def test_a_short_password_is_refused():
    with pytest.raises(BadOption, match="password must be 8 to 1024 characters long"):
        hash_password("short")


async def test_a_password_in_the_place_of_a_hash_is_refused_and_not_repeated():
    with pytest.raises(BadOption, match="the password of ann must be a hash") as caught:
        Basic({"ann": ("correct horse", "admin")})
    assert "horse" not in str(caught.value)


async def test_without_auth_everything_but_the_open_words_is_closed(drum):
    answer = await Browser(serve(drum, None)).get("/actuator/jobs")
    assert (answer.status, answer.json["error"].count("\n")) == (403, 0)
    assert "auth=" in answer.json["error"]


async def test_basic_lets_in_with_the_right_password_only(drum, hashed):
    browser = Browser(serve(drum, Basic({"ann": (hashed, "viewer")})))
    assert (await browser.known_as(basic("ann", "correct horse")).get("/actuator/jobs")).status == 200
    for wrong in (basic("ann", "correct mule"), basic("bob", "correct horse"), {"authorization": "Basic %%%"}, {}):
        answer = await browser.known_as(wrong).get("/actuator/jobs")
        assert (answer.status, answer.headers["www-authenticate"][:5]) == (401, "Basic")


async def test_a_token_may_be_given_by_its_hash(drum):
    digest = hashlib.sha256(b"the token of the ci").hexdigest()
    browser = Browser(serve(drum, Bearer({f"sha256:{digest}": ("ci", "viewer")})))
    assert (await browser.known_as(bearer("the token of the ci")).get("/actuator/jobs")).status == 200
    assert (await browser.known_as(bearer(digest)).get("/actuator/jobs")).status == 401


async def test_half_a_hash_of_a_token_is_refused():
    with pytest.raises(BadOption, match="token must be sha256: and 64 hexadecimal digits"):
        Bearer({"sha256:12": ("ci", "viewer")})


async def test_a_short_token_is_refused():
    with pytest.raises(BadOption, match="token must be 16 characters or longer"):
        Bearer({"short": ("ci", "viewer")})


async def test_an_unknown_role_is_refused_where_it_is_given():
    with pytest.raises(BadOption, match="role must be one of viewer, operator, admin"):
        Bearer({"long enough a token": ("ci", "king")})


@pytest.mark.parametrize(
    ("given", "status"), [("viewer", 200), (("ann", "admin"), 200), (User("ann"), 200), (None, 401), (False, 401)]
)
async def test_a_function_of_the_program_tells_who_asks(drum, given, status):
    def tell(request: Request):
        return given

    assert (await Browser(serve(drum, tell)).get("/actuator/jobs")).status == status


async def test_an_async_function_tells_too(drum):
    async def tell(request: Request):
        return request.headers.get("x-role")

    browser = Browser(serve(drum, tell))
    assert (await browser.get("/actuator/jobs", x_role="viewer")).status == 200
    assert (await browser.get("/actuator/jobs")).status == 401


async def test_one_of_several_ways_is_enough(drum, hashed):
    browser = Browser(serve(drum, [Basic({"ann": (hashed, "admin")}), AUTH]))
    assert (await browser.known_as(bearer(TOKENS["viewer"])).get("/actuator/jobs")).status == 200


async def test_what_is_no_way_at_all_is_refused_when_installed(drum):
    with pytest.raises(BadOption, match="auth must be Basic"):
        serve(drum, {"ann": "secret"})


async def test_allow_anyone_opens_everything_and_says_so(drum, caplog):
    assert (await Browser(serve(drum, allow_anyone)).get("/actuator/jobs")).status == 200
    assert "whoever reaches these pages" in caplog.text


async def test_a_private_address_becomes_a_cookie_and_leaves_the_address(drum):
    way = PrivateAddress()
    browser = Browser(serve(drum, way))
    answer = await browser.get(f"/admin/jobs/?token={way.token}")
    assert (answer.status, answer.headers["location"]) == (303, "http://shop/admin/jobs/")
    cookie = answer.headers["set-cookie"].split(";")[0]
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert (await browser.get("/admin/jobs/", cookie=cookie)).status == 200
    assert (await browser.get("/admin/jobs/?token=wrong")).status == 401


async def test_two_private_addresses_of_one_host_do_not_throw_each_other_out(drum):
    ways = PrivateAddress(), PrivateAddress()
    jar: dict[str, str] = {}
    for way in ways:
        answer = await Browser(serve(drum, way)).get(f"/admin/jobs/?token={way.token}")
        name, _, value = answer.headers["set-cookie"].split(";")[0].partition("=")
        jar[name] = value
    cookie = "; ".join(f"{name}={value}" for name, value in jar.items())
    for way in ways:
        assert (await Browser(serve(drum, way)).get("/admin/jobs/", cookie=cookie)).status == 200


async def test_roles_cover_those_below():
    assert UserRole.ADMIN.covers(UserRole.VIEWER)
    assert not UserRole.VIEWER.covers(UserRole.OPERATOR)


@pytest.mark.parametrize("path", ["/actuator/jobs", "/actuator/live", "/actuator/nothing", "/admin/jobs/"])
async def test_every_answer_carries_the_headers_of_a_careful_site(browser, admin, path):
    for answer in (await browser.get(path), await admin.get(path)):
        assert {name: answer.headers[name.lower()] for name in HEADERS} == HEADERS
        assert "unsafe" not in answer.headers["content-security-policy"]


async def test_what_is_not_there_is_not_told_to_strangers(browser, admin):
    assert (await browser.get("/actuator/nothing")).status == 401
    assert (await admin.get("/actuator/nothing")).status == 404
    answer = await admin.ask("DELETE", "/actuator/jobs")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 405),
        ({"sec-fetch-site": "same-origin"}, 405),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://shop"}, 405),
        ({"origin": "http://evil"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://shop.evil"}, 403),
        ({"origin": "http://["}, 403),
    ],
)
async def test_unsafe_methods_are_refused_to_pages_of_other_origins(admin, headers, status):
    assert (await admin.known_as(headers).post("/actuator/jobs")).status == status


async def test_a_websocket_is_turned_away(drum):
    said = []
    scope = {"type": "websocket", "path": "/actuator/jobs", "headers": [], "root_path": "", "query_string": b""}

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        said.append(message["type"])

    await serve(drum, AUTH)(scope, receive, send)
    assert said == ["websocket.close"]


async def test_a_path_with_a_line_break_is_not_left_to_the_program(browser, admin):
    for path in ("/admin/jobs/api/queues/a%0Ab/pause", "/actuator/%0A", "/track/a%0A"):
        assert (await browser.get(path)).headers["content-type"] == "application/json"
    assert (await browser.get("/actuator/%0A")).status == 401
    assert (await admin.post("/admin/jobs/api/queues/a%0Ab/pause")).status == 404


async def test_a_flood_of_passwords_is_slowed_down(drum, hashed, monkeypatch):
    monkeypatch.setattr(access, "_MOST_GUESSES", 3)
    browser = Browser(serve(drum, Basic({"ann": (hashed, "admin")})))
    answers = await asyncio.gather(
        *(browser.known_as(basic("ann", f"guess {number}")).get("/actuator/jobs") for number in range(6))
    )
    assert sorted(answer.status for answer in answers) == [401] * 3 + [429] * 3
    assert (await browser.known_as(basic("ann", "guess")).get("/actuator/jobs")).status == 401
