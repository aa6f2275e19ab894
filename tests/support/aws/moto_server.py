"""AWS for the tests: moto's own server over HTTP, and answers made by hand for the price list.

moto answers DescribeInstanceTypes from AWS' own table, page by page. It has no price list; the
products below have the attributes, units and tiers of the list's own.
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
    """A machine as the price list has it."""
    return _listed({"instanceType": name, "operatingSystem": "Linux"}, unit, {"0": usd})


def used(usage: str, unit: str, tiers: dict[str, str]) -> str:
    """Volumes or object storage as the price list has them: prices by where a tier begins."""
    return _listed({"usagetype": usage}, unit, tiers)


def _listed(attributes: dict[str, str], unit: str, tiers: dict[str, str]) -> str:
    """A product: JSON within JSON."""
    dimensions = {
        f"SKU.TERM.{begins}": {"unit": unit, "beginRange": begins, "pricePerUnit": {"USD": usd}}
        for begins, usd in tiers.items()
    }
    return json.dumps(
        {
            "product": {"attributes": attributes},
            "publicationDate": "2026-11-20T01:02:03Z",
            "terms": {"OnDemand": {"SKU.TERM": {"priceDimensions": dimensions}}},
        }
    )


FAMILIES = {
    ("AmazonEC2", "Storage"): [
        used("EBS:VolumeUsage", "GB-Mo", {"0": "0.05"}),
        used("EBS:VolumeUsage.gp2", "GB-Mo", {"0": "0.1000000000"}),
        used("EBS:VolumeUsage.gp3", "GB-Mo", {"0": "0.0800000000"}),
        used("USE1-BOS1-EBS:VolumeUsage.gp3", "GB-Mo", {"0": "0.096"}),
        used("EBS:VolumeUsage.piops", "GB-Mo", {"0": "0.125"}),
        used("EBS:VolumeUsage.io2", "GB-month", {"0": "0.125"}),
        used("EBS:VolumeUsage.st1", "GB-Mo", {"0": "0.045"}),
    ],
    ("AmazonEC2", "System Operation"): [
        used("EBS:VolumeIOUsage", "IOs", {"0": "0.00000005"}),
        used("EBS:VolumeP-IOPS.gp3", "IOPS-Mo", {"0": "0.0", "3000": "0.005"}),
        used("EBS:VolumeP-IOPS.piops", "IOPS-Mo", {"0": "0.065"}),
        used("EBS:VolumeP-IOPS.io2", "IOPS-Mo", {"0": "0.065"}),
        used("EBS:VolumeP-IOPS.io2.tier2", "IOPS-Mo", {"0": "0.0455"}),
    ],
    ("AmazonEC2", "Provisioned Throughput"): [
        used("EBS:VolumeP-Throughput.gp3", "GiBps-mo", {"0": "40.96"}),
    ],
    ("AmazonS3", "Storage"): [
        used("TimedStorage-ByteHrs", "GB-Mo", {"51200": "0.022", "0": "0.023"}),
        used("TimedStorage-SIA-ByteHrs", "GB-Mo", {"0": "0.0125"}),
    ],
    ("AmazonS3", "API Request"): [
        used("Requests-Tier1", "Requests", {"0": "0.0000050000"}),
        used("Requests-Tier2", "Requests", {"0": "0.0000004000"}),
        used("Requests-SIA-Tier1", "Requests", {"0": "0.00001"}),
    ],
}
"""Products but machines, by service and family; there is none of sc1."""


@contextmanager
def server() -> Iterator[str]:
    """The endpoint of a server that answers for EC2 and for the price list."""
    moto = DomainDispatcherApplication(create_backend_app)

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        if not environ.get("HTTP_X_AMZ_TARGET", "").endswith(".GetProducts"):
            return moto(environ, start)
        asked = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        wanted = {each["Field"]: each["Value"] for each in asked["Filters"]}
        found = FAMILIES.get((asked["ServiceCode"], wanted.get("productFamily", "")))
        if found is None:
            found = [product(name, PRICES[name]) for name in sorted(PRICES)]
        # A page for each product.
        at = int(asked.get("NextToken", "0"))
        page: dict[str, Any] = {"PriceList": [found[at]]}
        if at + 1 < len(found):
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
