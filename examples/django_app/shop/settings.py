"""Settings of Django. Orders and jobs share one database, so that one commit can hold both."""

import os
from urllib.parse import urlsplit

DATABASE_URL = os.environ["DATABASE_URL"]
_url = urlsplit(DATABASE_URL)

SECRET_KEY = os.environ["DJANGO_SECRET_KEY"]
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "shop.urls"
INSTALLED_APPS = ["shop"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _url.path.removeprefix("/"),
        "USER": _url.username,
        "PASSWORD": _url.password or "",
        "HOST": _url.hostname,
        "PORT": _url.port,
    }
}
