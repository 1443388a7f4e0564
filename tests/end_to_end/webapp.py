"""A FastAPI program with the band's tasks, for a real web server."""

import os

from fastapi import BackgroundTasks, FastAPI

from drumline.web import Bearer
from tests.end_to_end.band import drum, play

TOKEN = "the token of the tests"

app = FastAPI()
drum.install(app, auth=Bearer({TOKEN: ("tests", "admin")}), role=os.environ.get("DRUMLINE_TEST_ROLE") or None)


@app.post("/play/{number}")
async def ask_to_play(number: int, background_tasks: BackgroundTasks) -> dict[str, int]:
    background_tasks.add_task(play, number)
    return {"number": number}
