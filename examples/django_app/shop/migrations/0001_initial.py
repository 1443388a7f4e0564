"""The table of orders."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Made by `python manage.py makemigrations`."""

    operations = (
        migrations.CreateModel(
            "Order",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("item", models.CharField(max_length=100)),
                ("is_confirmed", models.BooleanField(default=False)),
            ],
        ),
    )
