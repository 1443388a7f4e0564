"""A worker whose clock may be wrong: under libfaketime `time.sleep` fails since Python 3.11, waiting does not."""

import os
import threading
import time
from typing import Any

from drumline.chaos.worker import run


def sleep(seconds: Any) -> None:
    threading.Event().wait(seconds)


if __name__ == "__main__":
    if "FAKETIME" in os.environ:
        time.sleep = sleep
    run()
