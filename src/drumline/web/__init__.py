"""Drumline over HTTP: who may come in, the actuator, the API, and how they become part of your web program."""

from drumline.web.access import Basic, Bearer, User, UserRole, allow_anyone
from drumline.web.passwords import hash_password

__all__ = ["Basic", "Bearer", "User", "UserRole", "allow_anyone", "hash_password"]
