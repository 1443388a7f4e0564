"""A small program with pages, for tests: its tasks, its users, its app."""

from typing import Any

from starlette.applications import Starlette

from drumline import Context, Drumline
from drumline.web import Bearer

TOKENS = {role: f"{role}-{role}-token" for role in ("viewer", "operator", "admin")}
AUTH = Bearer({token: (role, role) for role, token in TOKENS.items()})


def make_shop(url: str, namespace: str = "drumline") -> Drumline:
    drum = Drumline(url, namespace=namespace)

    @drum.task(queue="mail", max_attempts=2, backoff="1ms")
    async def send_mail(user_id: int, subject: str = "Welcome") -> str:
        return f"sent {subject} to {user_id}"

    @drum.task(max_attempts=1)
    async def fail(ctx: Context, words: str = "boom", password: str = "") -> None:
        ctx.log(f"about to fail with {password}", password=password)
        raise ValueError(f"{words} {password}")

    @drum.schedule(every="1h")
    async def tidy() -> None: ...

    return drum


def serve(drum: Drumline, auth: Any, **options: Any) -> Starlette:
    app = Starlette()
    drum.install(app, auth=auth, **options)
    return app


async def work_off(drum: Drumline) -> None:
    """Run what is due, and stop."""
    await drum.run(drain=True)
