def test_it_tells_how_many_jobs_a_second_and_leaves_none_behind(shop):
    shop.enqueue("add", '{"a": 1, "b": 2}')
    answer = shop.run("bench", "--jobs", "1200", "--concurrency", "10", "--store", shop.store, "--json")
    assert answer.code == 0, answer.err
    assert answer.json["jobs"] == 1200
    assert answer.json["enqueued_per_second"] > 0
    assert answer.json["run_per_second"] > 0
    left = shop.run("jobs", "list", "--store", shop.store, "--json").json
    assert [job["task"] for job in left] == ["add"]


def test_without_a_store_it_makes_one_and_takes_it_away(shop):
    answer = shop.run("bench", "--jobs", "50")
    assert answer.code == 0, answer.err
    assert answer.out.startswith("enqueued  ")
    assert "jobs a second" in answer.out
    assert not (shop.folder / "drumline.db").exists()
