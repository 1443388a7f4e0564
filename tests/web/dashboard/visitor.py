"""A person before the pages, without a browser: asks for pages, presses buttons, reads what is told."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlencode

from tests.web.browser import Answer, Browser

BASE = "/admin/jobs"


class _Words(HTMLParser):
    """What can be read on a page, and which tags it has."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


class Seen:
    """A page as a person sees it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.status = answer.status
        read = _Words()
        read.feed(answer.text)
        self.text = " ".join(" ".join(read.texts).split())
        self.tags = read.tags
        self.attributes = read.attributes

    def __contains__(self, words: str) -> bool:
        return words in self.text


class Visitor:
    """Goes from page to page as somebody with this role."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    async def look(self, path: str, **query: str) -> Seen:
        return Seen(await self._browser.get(BASE + path + (f"?{urlencode(query)}" if query else "")))

    async def press(self, action: str, *fields: tuple[str, str], back: str = "/jobs", **headers: str) -> str:
        """Send the form of a button, and give the sentence that is told afterwards, with + or - before it."""
        answer = await self.send(action, *fields, back=back, **headers)
        assert answer.status == 303, (answer.status, answer.text)
        assert answer.headers["location"] == BASE + back
        told = re.search(r"drumline_told=([^;]*)", answer.headers["set-cookie"])
        assert told is not None
        return unquote(told[1])

    async def send(self, action: str, *fields: tuple[str, str], back: str = "/jobs", **headers: str) -> Answer:
        body = urlencode([*fields, ("back", back)]).encode()
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return await self._browser.ask("POST", f"{BASE}/do/{action}", body, {**kind, **headers})
