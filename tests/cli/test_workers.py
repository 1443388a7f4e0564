from datetime import timedelta

from drumline.model.replica import ReplicaInfo, Role
from drumline.stores.sqlite import SqliteStore


def test_workers_are_listed_with_their_role_and_place(shop):
    store = SqliteStore(shop.folder / "drumline.db")
    store.migrate().run()
    info = ReplicaInfo(
        id="web-1:abc",
        name="web-1",
        role=Role.WORKER,
        queues=("mail",),
        slots=7,
        stuck=2,
        pid=42,
        beat_every=timedelta(hours=1),
    )
    store.beat(info, []).run()
    store.close().run()
    (row,) = shop.run("workers", "--store", shop.store, "--json").json
    assert (row["replica"], row["state"], row["role"], row["pid"]) == ("web-1", "running", "worker", 42)
    assert (row["queues"], row["slots"], row["running"], row["stale_writes"]) == (["mail"], 7, [], 0)
    assert row["stuck"] == 2
    table = shop.run("workers", "--store", shop.store).out
    assert "web-1" in table
    assert "STUCK" in table
    assert "mail" in table
