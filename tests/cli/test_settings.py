from tests.house import ROOT


def test_every_setting_is_shown_with_its_origin(shop, monkeypatch):
    (shop.folder / "drumline.toml").write_text("[worker]\nconcurrency = 7\n")
    monkeypatch.setenv("DRUMLINE_JOBS__MAX_ATTEMPTS", "9")
    rows = {row["key"]: row for row in shop.run("config", "show", "--json").json}
    assert (rows["worker.concurrency"]["value"], rows["worker.concurrency"]["origin"]) == ("7", "drumline.toml")
    assert rows["jobs.max_attempts"]["origin"] == "DRUMLINE_JOBS__MAX_ATTEMPTS"
    assert rows["store.url"]["origin"] == "default"


def test_the_store_option_counts_as_code(shop):
    rows = {row["key"]: row for row in shop.run("config", "show", "--store", "memory://", "--json").json}
    assert rows["store.url"] == {"key": "store.url", "value": "memory://", "origin": "code"}


def test_the_table_says_the_same(shop):
    assert "worker.concurrency" in shop.run("config", "show").out


def test_migrate_makes_the_file_and_can_be_repeated(shop):
    for _ in range(2):
        answer = shop.run("migrate", "--store", shop.store)
        assert answer.code == 0
        assert "the schema is that of this version" in answer.out
    assert (shop.folder / "drumline.db").exists()


def test_migrate_works_where_it_is_not_automatic(shop, monkeypatch):
    monkeypatch.setenv("DRUMLINE_STORE__AUTO_MIGRATE", "false")
    assert shop.run("migrate", "--store", shop.store).code == 0
    assert shop.run("jobs", "list", "--store", shop.store, "--json").json == []


def test_the_guide_names_every_setting(shop):
    guide = (ROOT / "docs/settings.md").read_text()
    keys = [row["key"] for row in shop.run("config", "show", "--json").json]
    assert [key for key in keys if f"| `{key}` |" not in guide] == []
