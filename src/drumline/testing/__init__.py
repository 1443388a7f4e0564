"""The kit with which programs test their own tasks: a harness with manual time, eager mode, an app in memory."""

from drumline.clock import ManualClock
from drumline.testing.eager import eager
from drumline.testing.harness import AsyncHarness, Harness, app, harness, lend
from drumline.testing.seen import Inspection, SeenJob

__all__ = ["AsyncHarness", "Harness", "Inspection", "ManualClock", "SeenJob", "app", "eager", "harness", "lend"]
