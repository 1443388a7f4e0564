"""What is sold."""

from django.db import models


class Order(models.Model):
    """One order, which is confirmed behind the customer's back."""

    item = models.CharField(max_length=100)
    is_confirmed = models.BooleanField(default=False)
