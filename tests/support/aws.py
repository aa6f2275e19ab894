"""AWS for the tests: moto's own server over HTTP, and answers made by hand for the price list.

moto answers DescribeInstanceTypes from AWS' own table, page by page. It has no price list.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

KEYS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "a secret for tests"}
PRICES = {"i4i.4xlarge": "1.3730000000", "m5d.large": "0.1130000000"}
"""What the price list has."""


def product(name: str, usd: str, unit: str = "Hrs") -> str:
    """A product as the price list has it: JSON within JSON."""
    dimension = {"unit": unit, "pricePerUnit": {"USD": usd}}
    return json.dumps(
        {
            "product": {"attributes": {"instanceType": name, "operatingSystem": "Linux"}},
            "publicationDate": "2026-11-20T01:02:03Z",
            "terms": {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": dimension}}}},
        }
    )


@contextmanager
def server() -> Iterator[str]:
    """The endpoint of a server that answers for EC2 and for the price list."""
    moto = DomainDispatcherApplication(create_backend_app)

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        if not environ.get("HTTP_X_AMZ_TARGET", "").endswith(".GetProducts"):
            return moto(environ, start)
        asked = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        # A page for each type.
        names = sorted(PRICES)
        at = int(asked.get("NextToken", "0"))
        page: dict[str, Any] = {"PriceList": [product(names[at], PRICES[names[at]])]}
        if at + 1 < len(names):
            page["NextToken"] = str(at + 1)
        start("200 OK", [("Content-Type", "application/x-amz-json-1.1")])
        return [json.dumps(page).encode()]

    listening = make_server("127.0.0.1", 0, answer, threaded=True)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
