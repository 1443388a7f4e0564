def test_every_option_is_shown_with_its_value(shop):
    tasks = {task["task"]: task for task in shop.run("tasks", "--app", shop.app, "--json").json}
    task = tasks["send_welcome_email"]
    place = task.pop("place")
    assert place.endswith(".py:8")
    assert task == {
        "task": "send_welcome_email",
        "queue": "mail",
        "priority": 7,
        "max_attempts": 6,
        "backoff": {"initial": 0.5, "factor": 2.0, "cap": 3600, "jitter": 0.25, "steps": []},
        "timeout": 30,
        "lease": 30,
        "retention": {"done": 7200, "dead": 7200, "cancelled": 7200},
        "executor": "coroutine",
        "retry_on": ["BaseException"],
        "give_up_on": [],
        "tags": ["welcome"],
        "aliases": [],
        "signature": "(user_id: int, subject: str = …)",
    }
    assert tasks["add"]["executor"] == "thread"


def test_a_person_sees_the_same(shop):
    text = shop.run("tasks", "--app", shop.app).out
    for words in (
        "send_welcome_email(user_id: int, subject: str = …)",
        "queue         mail",
        "priority      7",
        "max_attempts  6",
        "backoff       500ms, factor 2, cap 1h, jitter 0.25",
        "timeout       30s",
        "retention     done 2h, dead 2h, cancelled 2h",
        "tags          welcome",
        "executor      coroutine",
    ):
        assert words in text
    # The context is given, not sent.
    assert "fail(words: str = …)" in text
