import pytest

from drumline.sealing import check_key, generate_key


@pytest.fixture
def keys(shop, monkeypatch):
    """Give the shop these keys from now on; its app is read anew by every command."""

    def set_keys(key, *older):
        monkeypatch.setenv("DRUMLINE_ENCRYPTION__KEY", key)
        monkeypatch.setenv("DRUMLINE_ENCRYPTION__OLDER_KEYS", ",".join(older))

    return set_keys


def test_generate_prints_a_new_key_each_time(shop):
    first, second = (shop.run("keys", "generate").out.strip() for _ in range(2))
    assert check_key(first) != check_key(second)


def test_rotate_counts_what_it_sealed_anew(shop, keys):
    old, new = generate_key(), generate_key()
    clear = shop.enqueue("add", '{"a": 1, "b": 2}')
    keys(old)
    assert shop.run("keys", "rotate", "--store", shop.store, "--json").json["jobs"] == 1
    assert shop.show(clear)["args"] == {"a": 1, "b": 2}
    keys(new, old)
    answer = shop.run("keys", "rotate", "--store", shop.store)
    assert (answer.code, answer.out) == (0, "sealed anew: 1 jobs, 0 schedules; looked at 1 jobs\n")
    assert "sealed anew: 0 jobs" in shop.run("keys", "rotate", "--store", shop.store).out


def test_rotate_without_the_older_key_says_how_many_are_left(shop, keys):
    shop.enqueue("add", '{"a": 1, "b": 2}')
    keys(generate_key())
    shop.run("keys", "rotate", "--store", shop.store)
    keys(generate_key())
    answer = shop.run("keys", "rotate", "--store", shop.store)
    assert answer.code == 1
    assert "not sealed anew: 1; their key is not in encryption.older_keys" in answer.err


def test_rotate_without_a_key_says_how_to_make_one(shop):
    answer = shop.run("keys", "rotate", "--store", shop.store)
    assert answer.code == 2
    assert "set encryption.key (`drumline keys generate` makes one)" in answer.err


def test_without_the_key_a_job_is_shown_as_encrypted(shop, keys, monkeypatch):
    job_id = shop.enqueue("add", '{"a": 1, "b": 2}')
    keys(generate_key())
    shop.run("keys", "rotate", "--store", shop.store)
    monkeypatch.delenv("DRUMLINE_ENCRYPTION__KEY")
    monkeypatch.delenv("DRUMLINE_ENCRYPTION__OLDER_KEYS")
    assert shop.show(job_id)["args"] == "encrypted"
    shown = shop.run("jobs", "show", job_id, "--store", shop.store).out
    assert "encrypted" in shown
    assert "drumline:sealed" not in shown
