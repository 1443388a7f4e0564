import json

import pytest


def test_the_answer_tells_id_task_queue_and_state(shop):
    answer = shop.run("enqueue", "add", '{"a": 1, "b": 2}', "--app", shop.app, "--json").json
    assert len(answer.pop("id")) == 36
    assert answer == {
        "task": "add",
        "queue": "default",
        "state": "ready",
        "priority": 0,
        "args": {"a": 1, "b": 2},
        "key": None,
        "tags": [],
        "created": True,
        "replaced": False,
    }


def test_arguments_default_to_none_at_all(shop):
    assert shop.run("enqueue", "fail", "--app", shop.app).code == 0


def test_arguments_come_from_standard_input_too(shop):
    answer = shop.run("enqueue", "add", "-", "--app", shop.app, "--json", input='{"a": 1, "b": 2}')
    assert answer.json["args"] == {"a": 1, "b": 2}


def test_the_answer_to_a_person_is_one_line(shop):
    answer = shop.run("enqueue", "send_welcome_email", '{"user_id": 1}', "--app", shop.app)
    assert answer.out.endswith("of task send_welcome_email: ready in queue mail\n")
    assert answer.out.count("\n") == 1


def test_options_reach_the_job(shop):
    job_id = shop.enqueue(
        "send_welcome_email",
        '{"user_id": 42}',
        *("--at", "2100-01-01T00:00:00+01:00", "--queue", "slow", "--priority", "-5", "--key", "welcome-42"),
        *("--max-attempts", "3", "--timeout", "1m30s", "--tag", "vip", "--tag", "late", "--meta", '{"from": "test"}'),
    )
    job = shop.show(job_id)
    assert job["state"] == "delayed"
    assert job["due_at"] == "2099-12-31T23:00:00.000Z"
    assert (job["queue"], job["priority"], job["max_attempts"], job["timeout"]) == ("slow", -5, 3, 90)
    assert (job["key"], job["tags"], job["meta"]) == ("welcome-42", ["welcome", "vip", "late"], {"from": "test"})
    assert job["origin"] == "drumline enqueue"


@pytest.mark.parametrize("delay", ["3600", "1h", "60m"])
def test_a_delay_is_seconds_or_a_duration(shop, delay):
    answer = shop.run("enqueue", "fail", "--delay", delay, "--app", shop.app, "--json").json
    assert answer["state"] == "delayed"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["add", '{"a": "1", "b": 2}'], "task add: a: expected int, got str"),
        (["add", '{"a": 1}'], "task add: b: expected int, got nothing"),
        (["add", '{"a": 1, "b": 2, "c": 3}'], "task add: c: unknown argument; it takes a, b"),
        (["add", "{"], "task add: the arguments are not JSON"),
        (["add", "[1, 2]"], "task add: expected a JSON object of arguments, got list"),
        (["fail", "--delay", "soon"], "task fail: delay must be a duration"),
        (["fail", "--at", "2026-05-05T14:00:00"], "task fail: at must be an instant with a time zone"),
        (["fail", "--priority", "101"], "task fail: priority must be a whole number from -100 to 100"),
        (["fail", "--meta", "{"], "--meta must be a JSON object"),
        (["fail", "--on-conflict", "replace"], "task fail: on_conflict must be left out where no key is given"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_made(shop, words, sentence):
    answer = shop.run("enqueue", *words, "--app", shop.app)
    assert answer.code == 2
    assert answer.err.startswith(f"drumline: {sentence}")
    assert answer.err.count("\n") == 1
    assert shop.run("jobs", "list", "--app", shop.app, "--json").json == []


def test_a_task_that_is_not_registered_is_not_found(shop):
    answer = shop.run("enqueue", "ad", '{"a": 1, "b": 2}', "--app", shop.app)
    assert answer.code == 3
    assert "did you mean 'add'?" in answer.err


def test_the_store_alone_is_not_enough(shop):
    answer = shop.run("enqueue", "add", '{"a": 1, "b": 2}', "--store", shop.store)
    assert answer.code == 2
    assert "enqueue needs the task's code" in answer.err


def test_a_key_that_is_held_answers_with_its_job(shop):
    first = shop.enqueue("add", '{"a": 1, "b": 2}', "--key", "k", "--queue", "slow")
    answer = shop.run("enqueue", "add", '{"a": 3, "b": 4}', "--key", "k", "--app", shop.app, "--json")
    assert answer.code == 0
    assert (answer.json["id"], answer.json["created"]) == (first, False)
    assert (answer.json["queue"], answer.json["args"]) == ("slow", {"a": 1, "b": 2})


def test_a_key_that_is_held_can_be_replaced(shop):
    first = shop.enqueue("add", '{"a": 1, "b": 2}', "--key", "k")
    words = ("--key", "k", "--on-conflict", "replace", "--app", shop.app)
    answer = shop.run("enqueue", "add", '{"a": 3, "b": 4}', *words, "--json").json
    assert (answer["id"], answer["created"], answer["replaced"]) == (first, False, True)
    assert shop.show(first)["args"] == {"a": 3, "b": 4}


def test_a_key_that_is_held_can_be_a_no(shop):
    shop.enqueue("add", '{"a": 1, "b": 2}', "--key", "k")
    answer = shop.run("enqueue", "add", '{"a": 1, "b": 2}', "--key", "k", "--on-conflict", "raise", "--app", shop.app)
    assert answer.code == 1
    assert "key 'k' is held by job" in answer.err


def test_an_id_of_ones_own_makes_a_repeat_harmless(shop):
    own = "0198c0de-0000-7000-8000-000000000001"
    assert shop.enqueue("add", '{"a": 1, "b": 2}', "--id", own) == own
    assert shop.enqueue("add", '{"a": 1, "b": 2}', "--id", own) == own
    assert len(shop.run("jobs", "list", "--app", shop.app, "--json").json) == 1


def test_a_great_number_arrives_exactly(shop):
    args = {"a": 2**63, "b": 2**64 - 1}
    assert shop.show(shop.enqueue("add", json.dumps(args)))["args"] == args


def test_the_audit_knows_who_enqueued_by_hand(shop):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}')
    (row,) = shop.audit()
    assert (row.action, row.targets, row.by.via) == ("enqueue", (job_id,), "cli")
