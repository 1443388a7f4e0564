import pytest

from tests.support.build import new_job

KEYS = [
    *("id", "task", "queue", "state", "priority", "args", "key", "tags", "meta", "source", "origin", "schedule"),
    *("tick", "waits_for", "attempt", "max_attempts", "fence", "created_at", "due_at", "claimed_at", "finished_at"),
    *("expires_at", "replica", "lease_until", "progress", "result", "result_is_repr", "user_error", "last_error"),
    *("attempts", "backoff", "timeout", "lease", "retention"),
]
HOSTILE = "\x1b[2J\r\n[bold]\u202eevil\x9b"


@pytest.fixture
def dead(shop):
    """The id of a dead job."""
    job_id = shop.enqueue("fail")
    shop.work()
    return job_id


def test_a_job_is_shown_with_all_that_is_stored(shop):
    job = shop.show(shop.enqueue("send_welcome_email", '{"user_id": 1}'))
    assert list(job) == [*KEYS, "logs"]
    assert (job["state"], job["queue"], job["priority"], job["timeout"]) == ("ready", "mail", 7, 30)
    assert job["retention"] == {"done": 7200, "dead": 7200, "cancelled": 7200}


def test_the_list_shows_the_same_facts(shop):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}')
    (listed,) = shop.run("jobs", "list", "--store", shop.store, "--json").json
    shown = shop.show(job_id)
    del shown["logs"]
    assert listed == shown


def test_jobs_are_listed_by_origin_and_by_metadata(shop):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}', "--meta", '{"row": 7}')
    shop.enqueue("add", '{"a": 1, "b": 2}', "--meta", '{"row": 8}')

    def listed(*words):
        return [job["id"] for job in shop.run("jobs", "list", *words, "--store", shop.store, "--json").json]

    assert len(listed("--origin", "drumline enqueue")) == 2
    assert listed("--origin", "GET /") == []
    assert listed("--meta", '{"row": 7}') == [job_id]
    assert shop.run("jobs", "list", "--meta", "7", "--store", shop.store).code == 2


def test_two_reads_of_an_unchanged_job_are_equal(shop, dead):
    waiting = shop.enqueue("add", '{"a": 1, "b": 2}', "--delay", "1h")
    for words in (["jobs", "show", dead], ["jobs", "show", waiting], ["jobs", "list"]):
        reads = [shop.run(*words, "--store", shop.store, "--json").out for _ in range(2)]
        assert reads[0] == reads[1]


def test_result_and_arguments_are_values(shop):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}')
    shop.work()
    job = shop.show(job_id)
    assert (job["state"], job["args"], job["result"]) == ("done", {"a": 1, "b": 2}, 3)
    assert job["finished_at"] is not None


def test_a_dead_job_shows_its_attempts_and_log_lines(shop, dead):
    job = shop.show(dead)
    assert (job["state"], job["last_error"], job["attempt"]) == ("dead", "ValueError: boom", 2)
    assert [(one["number"], one["ended"]) for one in job["attempts"]] == [(1, "failed"), (2, "failed")]
    first = job["attempts"][0]
    assert first["replica"] == first["by"]
    assert (first["error"]["type"], first["error"]["message"]) == ("ValueError", "boom")
    assert "raise ValueError(words)" in first["error"]["traceback"]
    assert [(line["attempt"], line["message"], line["fields"]) for line in job["logs"]] == [
        (1, "about to fail", {"words": "boom"}),
        (2, "about to fail", {"words": "boom"}),
    ]


def test_the_page_for_a_person_has_tracebacks_and_log_lines(shop, dead):
    page = shop.run("jobs", "show", dead, "--store", shop.store).out
    assert "attempt 1: failed after" in page
    assert "    Traceback (most recent call last):" in page
    assert "attempt 2: about to fail words='boom'" in page
    assert "waits" not in page


def test_the_page_says_why_a_job_waits(shop):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}')
    assert "no worker is alive" in shop.run("jobs", "show", job_id, "--store", shop.store).out
    shop.run("queues", "pause", "default", "--reason", "a deploy", "--store", shop.store)
    page = shop.run("jobs", "show", job_id, "--store", shop.store).out
    assert "queue default is paused by" in page
    assert "a deploy" in page


def test_hostile_data_is_shown_as_text(shop):
    escaped = "\\x1b[2J\\r\\n[bold]\\u202eevil\\x9b"
    job_id = shop.enqueue("fail", '{"words": "\\u001b[2J\\r\\n[bold]\\u202eevil\\u009b"}')
    shop.work()
    for words in (["jobs", "list"], ["jobs", "show", job_id]):
        answer = shop.run(*words, "--store", shop.store)
        assert escaped in answer.out
        assert not set("\x1b\r\u202e\x9b") & set(answer.out)
    assert shop.show(job_id)["attempts"][0]["error"]["message"] == HOSTILE


def test_a_wide_value_is_whole_where_it_is_piped(shop):
    shop.enqueue("fail", f'{{"words": "{"x" * 500}"}}')
    shop.work()
    assert "x" * 500 in shop.run("jobs", "list", "--store", shop.store).out


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ([], 3),
        (["--state", "dead"], 1),
        (["--state", "dead,delayed"], 2),
        (["--task", "add"], 1),
        (["--queue", "mail"], 1),
        (["--tag", "welcome"], 1),
        (["--key", "k"], 1),
        (["--limit", "2"], 2),
        (["--task", "add", "--state", "dead"], 0),
    ],
)
def test_the_list_is_filtered(shop, dead, words, number):
    shop.enqueue("add", '{"a": 1, "b": 2}', "--delay", "1h", "--key", "k")
    shop.enqueue("send_welcome_email", '{"user_id": 1}')
    assert len(shop.run("jobs", "list", "--store", shop.store, "--json", *words).json) == number


def test_the_list_says_that_there_is_more(shop):
    for _ in range(3):
        shop.enqueue("fail")
    assert shop.run("jobs", "list", "--store", shop.store, "--limit", "3").err == ""
    assert "there are more" in shop.run("jobs", "list", "--store", shop.store, "--limit", "2").err


def test_a_dead_job_is_retried_by_its_id(shop, dead):
    answer = shop.run("jobs", "retry", dead, "--reason", "mended", "--store", shop.store)
    assert (answer.code, answer.out) == (0, f"job {dead}: retried\n")
    job = shop.show(dead)
    assert (job["state"], job["attempt"], len(job["attempts"])) == ("ready", 0, 2)


def test_dead_jobs_are_retried_by_a_filter_which_means_dead_ones(shop, dead):
    done = shop.enqueue("add", '{"a": 1, "b": 2}')
    shop.work()
    assert shop.run("jobs", "retry", "--queue", "default", "--store", shop.store).out == "1 job: retried\n"
    assert shop.show(dead)["state"] == "ready"
    assert shop.show(done)["state"] == "done"


def test_a_waiting_job_is_cancelled(shop):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}')
    assert shop.run("jobs", "cancel", job_id, "--store", shop.store).code == 0
    assert shop.show(job_id)["state"] == "cancelled"


def test_a_filter_that_fits_nothing_is_a_no(shop):
    answer = shop.run("jobs", "cancel", "--task", "add", "--store", shop.store)
    assert (answer.code, answer.err) == (1, "drumline: no job fits the filter\n")


def test_a_dead_job_is_discarded(shop, dead):
    assert shop.run("jobs", "discard", dead, "--store", shop.store).code == 0
    assert shop.run("jobs", "show", dead, "--store", shop.store).code == 3


def test_the_private_jobs_of_replicas_are_not_listed(shop, ledger):
    shop.enqueue("add", '{"a": 1, "b": 2}')
    ledger.store.enqueue([new_job("add", queue="@web-1:1")]).run()
    words = ("jobs", "list", "--store", shop.store, "--json")
    assert [job["queue"] for job in shop.run(*words).json] == ["default"]
    assert [job["queue"] for job in shop.run(*words, "--queue", "@web-1:1").json] == ["@web-1:1"]


@pytest.mark.parametrize("words", [("--state", ""), ("--state", ","), ("--meta", "{}")])
def test_a_filter_that_names_nothing_is_not_everything(shop, dead, words):
    answer = shop.run("jobs", "discard", *words, "--store", shop.store)
    assert (answer.code, answer.out) == (2, "")
    assert shop.show(dead)["state"] == "dead"


def test_a_waiting_job_is_moved(shop):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}')
    words = ("jobs", "reschedule", job_id, "--at", "2100-01-01T00:00:00Z", "--store", shop.store)
    assert shop.run(*words).out == f"job {job_id}: moved\n"
    assert (shop.show(job_id)["state"], shop.show(job_id)["due_at"]) == ("delayed", "2100-01-01T00:00:00.000Z")


def test_a_job_is_moved_by_its_key(shop):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}', "--key", "k")
    assert shop.run("jobs", "reschedule", "--key", "k", "--delay", "3600", "--store", shop.store).code == 0
    assert shop.show(job_id)["state"] == "delayed"


@pytest.mark.parametrize(
    ("verb", "sentence"),
    [
        ("retry", "only a job that has ended can be retried"),
        ("discard", "only a job that has ended can be discarded"),
    ],
)
def test_what_cannot_be_done_to_a_waiting_job_is_a_no(shop, verb, sentence):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}')
    answer = shop.run("jobs", verb, job_id, "--store", shop.store)
    assert (answer.code, answer.err) == (1, f"drumline: job {job_id}: refused: {sentence}\n")


def test_cancelling_what_has_ended_is_a_no(shop, dead):
    answer = shop.run("jobs", "cancel", dead, "--store", shop.store)
    assert answer.code == 1
    assert "it has already ended" in answer.err


def test_one_unknown_id_among_others_is_told(shop, dead):
    unknown = "00000000-0000-7000-8000-000000000000"
    answer = shop.run("jobs", "retry", dead, unknown, "--store", shop.store, "--json")
    assert answer.code == 3
    assert answer.json == {dead: "applied", unknown: "not found"}


def test_a_retry_whose_key_is_in_use_is_a_no(shop):
    job_id = shop.enqueue("fail", "{}", "--key", "k")
    shop.work()
    shop.enqueue("fail", "{}", "--key", "k")
    answer = shop.run("jobs", "retry", job_id, "--store", shop.store)
    assert answer.code == 1
    assert "another job holds its unique key" in answer.err


def test_the_audit_knows_who_did_it_and_by_which_door(shop, dead):
    shop.run("jobs", "retry", dead, "--reason", "mended", "--store", shop.store)
    row, _ = shop.audit()
    assert (row.action, row.targets, row.by.via, row.by.why) == ("retry", (dead,), "cli", "mended")
