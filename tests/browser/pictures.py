"""Takes a picture of every page of the real demo, in light and dark: `make pictures`."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.chromium import FLAGS, LANGUAGE, MISSING, find_chromium

WIDTH, HEIGHT = 1360, 900
# Pages that go on for long are cut there.
LONGEST = 1100
PAGES = {
    "overview": "",
    "jobs": "jobs",
    "schedules": "schedules",
    "schedule": "schedules/sync_inventory",
    "dead-letters": "dead",
    "queues": "queues",
    "workers": "workers",
    "audit": "audit",
}
JOBS = {"job": "jobs?state=running&task=build_report", "dead-job": "jobs?state=dead&task=charge_card"}
PROGRAM = str(Path(sys.executable).with_name("drumline"))
# Long enough for a report to be half written.
WARM_UP_MILLIS = 14_000


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    program = find_chromium()
    if program is None:
        sys.exit(MISSING)
    with demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS), env={**os.environ, **LANGUAGE})
        for scheme in ("light", "dark"):
            page = browser.new_page(color_scheme=scheme, viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(address)
            page.wait_for_timeout(WARM_UP_MILLIS if scheme == "light" else 0)
            take_all(page, address.partition("?")[0], folder, scheme)
        browser.close()


def take_all(page: Page, base: str, folder: Path, scheme: str) -> None:
    for name, path in JOBS.items():
        page.goto(base + path)
        page.locator("table.jobs a.strong").first.click()
        take(page, folder / f"{name}-{scheme}.png")
    for name, path in PAGES.items():
        page.goto(base + path)
        take(page, folder / f"{name}-{scheme}.png")


def take(page: Page, path: Path) -> None:
    page.get_by_text("Live", exact=True).wait_for()
    page.wait_for_timeout(700)
    height = min(page.evaluate("document.documentElement.scrollHeight"), LONGEST)
    page.set_viewport_size({"width": WIDTH, "height": max(height, HEIGHT)})
    page.wait_for_timeout(300)
    page.screenshot(path=path)
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    print(path)


@contextmanager
def demo() -> Iterator[str]:
    """The demo with a second replica, and the private address of its dashboard."""
    with subprocess.Popen(
        [PROGRAM, "demo"], stdout=subprocess.PIPE, text=True, env={**os.environ, "HOSTNAME": "web-1"}
    ) as running:
        assert running.stdout is not None
        said = ""
        # The first line of numbers follows when the worker has begun.
        while not (counted := re.search(r"dashboard: (\S+).*?(sqlite:///\S+).* ready ", said, re.DOTALL)):
            said += running.stdout.readline()
        environment = {**os.environ, "HOSTNAME": "web-2", "DRUMLINE_DEMO_STORE": counted[2]}
        second = subprocess.Popen(
            [PROGRAM, "run", "drumline.demo.app:drum"],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment,
        )
        try:
            yield counted[1]
        finally:
            for process in (second, running):
                process.terminate()
                process.wait(30)


if __name__ == "__main__":
    main()
