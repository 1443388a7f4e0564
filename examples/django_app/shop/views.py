"""Orders over HTTP."""

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse

from shop.jobs import confirm
from shop.models import Order


def take_order(request: HttpRequest) -> HttpResponse:
    """Order and job are there together or not at all."""
    item = request.POST["item"]
    with transaction.atomic():
        order = Order.objects.create(item=item)
        confirm.using(transaction=connection).enqueue_sync(order_id=order.id)
        if item == "triangle":
            transaction.set_rollback(True)
            return JsonResponse({"error": "we have no triangles"}, status=409)
    return JsonResponse({"order": order.id}, status=201)


def list_orders(request: HttpRequest) -> HttpResponse:
    """Every order, and whether it is confirmed."""
    orders = Order.objects.order_by("id").values("item", "is_confirmed")
    return JsonResponse({"orders": list(orders)})
