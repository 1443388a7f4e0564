"""Where the pages are."""

from django.urls import path

from shop.views import list_orders, take_order

urlpatterns = [path("order", take_order), path("orders", list_orders)]
