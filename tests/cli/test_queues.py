def test_queues_are_listed_with_their_jobs(shop):
    shop.enqueue("add", '{"a": 1, "b": 2}')
    shop.enqueue("send_welcome_email", '{"user_id": 1}', "--delay", "1h")
    rows = shop.run("queues", "list", "--store", shop.store, "--json").json
    assert [(row["queue"], row["ready"], row["delayed"], row["paused"]) for row in rows] == [
        ("default", 1, 0, False),
        ("mail", 0, 1, False),
    ]


def test_the_group_alone_lists_them_too(shop):
    shop.enqueue("add", '{"a": 1, "b": 2}')
    words = ("--store", shop.store, "--json")
    assert shop.run("queues", *words).out == shop.run("queues", "list", *words).out


def test_a_queue_is_paused_and_resumed(shop):
    words = ("--store", shop.store)
    assert shop.run("queues", "pause", "mail", "--reason", "a deploy", *words).out == "queue mail: paused\n"
    (row,) = shop.run("queues", *words, "--json").json
    assert (row["queue"], row["paused"], row["reason"]) == ("mail", True, "a deploy")
    assert "a deploy" in shop.run("queues", *words).out
    assert shop.run("queues", "resume", "mail", *words).out == "queue mail: resumed\n"
    assert shop.run("queues", *words, "--json").json == []


def test_pausing_twice_says_so_and_is_no_error(shop):
    shop.run("queues", "pause", "mail", "--store", shop.store)
    answer = shop.run("queues", "pause", "mail", "--store", shop.store)
    assert (answer.code, answer.out) == (0, "queue mail: was paused already\n")


def test_what_stands_before_the_command_counts_for_it(shop):
    other = f"sqlite:///{shop.folder / 'other.db'}"
    assert shop.run("queues", "--store", other, "pause", "mail").code == 0
    assert [row["queue"] for row in shop.run("queues", "--store", other, "--json", "list").json] == ["mail"]
    assert shop.run("queues", "list", "--json").json == []
    assert shop.run("queues", "--json", "--store", other, "resume", "mail").json == {"mail": {"changed": True}}


def test_the_app_may_stand_before_the_command(shop):
    shop.enqueue("add", '{"a": 1, "b": 2}')
    answer = shop.run("queues", "--app", "no_such_module:drum", "list")
    assert (answer.code, "no_such_module" in answer.err) == (2, True)
    assert shop.run("queues", "--app", shop.app, "list").out == shop.run("queues", "list").out


def test_what_a_command_is_given_itself_counts_more_than_what_stands_before_it(shop):
    other = f"sqlite:///{shop.folder / 'other.db'}"
    shop.run("queues", "--store", other, "pause", "mail", "--store", shop.store)
    assert [row["queue"] for row in shop.run("queues", "--store", shop.store, "--json").json] == ["mail"]
    assert shop.run("queues", "--store", other, "--json").json == []
