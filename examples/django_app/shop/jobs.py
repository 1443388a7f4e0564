"""The background work: `drumline run shop.jobs:drum`."""

import os

import django
from django.apps import apps
from django.conf import settings
from django.db import close_old_connections

from drumline import Drumline

# A worker is started by drumline and not by Django, which then is not set up yet.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
if not apps.ready:
    django.setup()

drum = Drumline(settings.DATABASE_URL)


@drum.task(max_attempts=3)
def confirm(order_id: int) -> str:
    from shop.models import Order

    # A worker's threads outlive many jobs, so it does what Django does between requests.
    close_old_connections()
    # Idempotent: a second run of the same job finds nothing left to do.
    changed = Order.objects.filter(id=order_id, is_confirmed=False).update(is_confirmed=True)
    return "confirmed" if changed else "was confirmed"
