from drumline.model.replica import ReplicaInfo
from drumline.stores.sqlite import SqliteStore


def test_the_fleet_is_shown_at_a_glance(shop):
    shop.enqueue("add", '{"a": 1, "b": 2}')
    shop.enqueue("fail")
    shop.work()
    shop.enqueue("send_welcome_email", '{"user_id": 1}')
    answer = shop.run("stats", "--store", shop.store)
    assert answer.code == 0
    assert "jobs       1 ready, 0 delayed, 0 running, 1 done, 1 dead, 0 cancelled" in answer.out
    assert "1 done, 2 failed; wait p50" in answer.out
    assert "0 running with 0 slots" in answer.out
    assert [line.split()[0] for line in answer.out.splitlines()[6:8]] == ["default", "mail"]


def test_its_json_holds_stored_facts_only(shop):
    shop.enqueue("add", '{"a": 1, "b": 2}')
    shop.work()
    shop.run("queues", "pause", "mail", "--store", shop.store)
    found = shop.run("stats", "--store", shop.store, "--json").json
    assert found["jobs"] == {"ready": 0, "delayed": 0, "running": 0, "done": 1, "dead": 0, "cancelled": 0}
    assert [(row["queue"], row["done"], row["paused"]) for row in found["queues"]] == [
        ("default", 1, False),
        ("mail", 0, True),
    ]
    assert [(row["task"], row["last_hour"]["done"]) for row in found["tasks"]] == [("add", 1)]
    assert (found["last_hour"]["done"], found["last_hour"]["failed"]) == (1, 0)
    assert found["schedules"] == {"total": 0, "paused": 0, "orphaned": 0, "late": 0}
    assert found["replicas"]["running"] == 0


def test_replicas_and_their_slots_are_told(shop):
    store = SqliteStore(shop.folder / "drumline.db")
    store.migrate().run()
    store.beat(ReplicaInfo(id="web-1:abc", name="web-1", slots=7), []).run()
    store.close().run()
    assert "1 running with 7 slots" in shop.run("stats", "--store", shop.store).out
