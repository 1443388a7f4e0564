import pytest

from drumline.model.mask import mask_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///drumline.db", "sqlite:///drumline.db"),
        ("memory://", "memory://"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://user@host/db", "postgresql://user@host/db"),
        ("postgresql://user:secret@host:5432/db", "postgresql://user:***@host:5432/db"),
        ("postgresql://user:se@cret@host/db", "postgresql://user:***@host/db"),
        ("postgresql://user:se/cret@host/db", "postgresql://user:***@host/db"),
        ("redis://:secret@host:6379/0", "redis://:***@host:6379/0"),
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("user:secret@host", "user:***@host"),
        ("postgresql://host/db?sslmode=require&password=secret", "postgresql://host/db?sslmode=require&password=***"),
        ("redis://host?auth_token=secret&db=1", "redis://host?auth_token=***&db=1"),
        ("postgresql://host/db?sslkey=secret&PASSFILE=secret#x", "postgresql://host/db?sslkey=***&PASSFILE=***#x"),
    ],
)
def test_the_secrets_of_a_url_are_masked(url, shown):
    assert mask_url(url) == shown
