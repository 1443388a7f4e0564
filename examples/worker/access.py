"""Who may come in to the pages: `drumline run jobs:drum --web … --auth access:auth`."""

import os

from drumline.web import Basic, Bearer

auth = [
    # Made by `drumline web --hash-password`; the password itself is nowhere.
    Basic({"ann": (os.environ["SHOP_PASSWORD_HASH"], "admin")}),
    Bearer({os.environ["SHOP_METRICS_TOKEN"]: ("prometheus", "viewer")}),
]
