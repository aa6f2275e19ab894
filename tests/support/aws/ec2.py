"""EC2 for the tests: moto's own server, what it lacks, and what can go wrong, on command.

moto has no placement groups, takes a repeated request for a new one, and lets go of what is in use:
answers to those are made here, as EC2's API reference has them. Each request may be refused, or
something may happen before or after it is carried out.
"""

from __future__ import annotations

import io
import re
import threading
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

REGION = "us-east-1"
XMLNS = 'xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"'
Hook = Callable[[], None]
Environ = dict[str, Any]


class Cloud:
    """The server, and what is on it."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._groups: dict[str, dict[str, str]] = {}
        self._answered: dict[str, tuple[str, list[tuple[str, str]], bytes]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Each request: its action and its parameters."""
        self.before: dict[str, Hook] = {}
        self.after: dict[str, Hook] = {}
        """What happens, once, before or after an action."""
        self.refused: dict[str, list[tuple[str, int]]] = defaultdict(list)
        """Codes and HTTP statuses with which the next requests of an action are refused."""
        self.keys = "tester"
        """Whose requests are taken; others' are as if their credentials had expired."""
        self.endpoint = ""

    def __call__(self, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        """Answers a request."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        action = asked.get("Action", "")
        if environ["PATH_INFO"] != "/" or "Credential=root/" in environ.get(
            "HTTP_AUTHORIZATION", ""
        ):
            own: Iterable[bytes] = self._moto(environ, start)
            return own  # The tests'.
        self.asked.append((action, asked))
        if hook := self.before.pop(action, None):
            hook()
        answer = self._answer(action, asked, environ)
        if hook := self.after.pop(action, None):
            hook()
        start(answer[0], answer[1])
        return [answer[2]]

    def _answer(
        self, action: str, asked: dict[str, str], environ: Environ
    ) -> tuple[str, list[tuple[str, str]], bytes]:
        if f"Credential={self.keys}/" not in environ.get("HTTP_AUTHORIZATION", ""):
            return _refusal("RequestExpired", 400)
        if self.refused[action]:
            return _refusal(*self.refused[action].pop(0))
        with self._lock:
            if token := asked.get("ClientToken"):
                if token not in self._answered:
                    self._answered[token] = self._carried_out(environ)
                return self._answered[token]
            if action.endswith("PlacementGroup"):
                return self._placement_group(action, asked)
            if action == "DescribePlacementGroups":
                return self._placement_groups(asked)
            if action == "DeleteSecurityGroup" and self._is_used(asked["GroupId"]):
                return _refusal("DependencyViolation", 400)
            return self._carried_out(environ)

    def _carried_out(self, environ: Environ) -> tuple[str, list[tuple[str, str]], bytes]:
        said: list[Any] = []
        body = b"".join(self._moto(environ, lambda *answer: said.extend(answer)))
        return said[0], said[1], body

    def _placement_group(
        self, action: str, asked: dict[str, str]
    ) -> tuple[str, list[tuple[str, str]], bytes]:
        name = asked["GroupName"]
        if action == "DeletePlacementGroup":
            if self._is_used(name):
                return _refusal("InvalidPlacementGroup.InUse", 400)
            if self._groups.pop(name, None) is None:
                return _refusal("InvalidPlacementGroup.Unknown", 400)
            return _answer(action, "<return>true</return>")
        if name in self._groups:
            return _refusal("InvalidPlacementGroup.Duplicate", 400)
        tags = {
            asked[key]: asked[key.removesuffix("Key") + "Value"]
            for key in asked
            if re.fullmatch(r"TagSpecification\.1\.Tag\.\d+\.Key", key)
        }
        self._groups[name] = tags
        return _answer(action, f"<placementGroup>{_group(name, tags)}</placementGroup>")

    def _placement_groups(self, asked: dict[str, str]) -> tuple[str, list[tuple[str, str]], bytes]:
        by, wanted = asked["Filter.1.Name"], asked["Filter.1.Value.1"]
        found = {
            name: tags
            for name, tags in self._groups.items()
            if (wanted in tags if by == "tag-key" else tags.get(by.removeprefix("tag:")) == wanted)
        }
        items = "".join(f"<item>{_group(*each)}</item>" for each in found.items())
        return _answer("DescribePlacementGroups", f"<placementGroupSet>{items}</placementGroupSet>")

    def _is_used(self, group: str) -> bool:
        """Whether a machine that has not ended is in a group: a security group by its id."""
        return any(
            group in {tag["Value"] for tag in each["Tags"]}
            or group in {each["GroupId"] for each in each["SecurityGroups"]}
            for each in self.running()
        )

    @property
    def ec2(self) -> Any:
        """The tests' own way to what is on the server, which nothing is refused."""
        return boto3.client(
            "ec2",
            region_name=REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id="root",
            aws_secret_access_key="secret",
        )

    def instances(self) -> list[dict[str, Any]]:
        """All machines, also those that have ended, in the order in which they were rented."""
        found = [
            each
            for reservation in self._own.describe_instances()["Reservations"]
            for each in reservation["Instances"]
        ]
        return found

    def running(self) -> list[dict[str, Any]]:
        """The machines that are paid for."""
        return [each for each in self.instances() if each["State"]["Name"] == "running"]

    def left(self) -> dict[str, list[str]]:
        """All that would have to be paid for, or is in the way; nothing if that is empty."""
        volumes = self._own.describe_volumes()["Volumes"]
        groups = self._own.describe_security_groups()["SecurityGroups"]
        found = {
            "instances": [each["InstanceId"] for each in self.running()],
            "volumes": [each["VolumeId"] for each in volumes],
            "security groups": [g["GroupName"] for g in groups if g["GroupName"] != "default"],
            "placement groups": list(self._groups),
        }
        return {what: names for what, names in found.items() if names}

    def end(self, *instances: str) -> None:
        """Machines end, as when AWS finds a fault."""
        self._own.terminate_instances(InstanceIds=list(instances))

    def subnet(self) -> str:
        """A subnet."""
        found: str = self._own.describe_subnets()["Subnets"][0]["SubnetId"]
        return found

    def image(self) -> str:
        """An image, and a key pair called mine."""
        self._own.create_key_pair(KeyName="mine")
        found: str = self._own.register_image(Name="ubuntu")["ImageId"]
        return found

    def open(self, endpoint: str) -> None:
        """Has the tests' own client find the server."""
        self.endpoint = endpoint
        self._own = self.ec2

    def reset(self) -> None:
        """Nothing is on the server, and nothing happens, any more."""
        urllib.request.urlopen(f"{self.endpoint}/moto-api/reset", data=b"").close()
        for state in (self._groups, self._answered, self.before, self.after, self.refused):
            state.clear()
        self.asked.clear()
        self.keys = "tester"


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


@contextmanager
def cloud() -> Iterator[Cloud]:
    """The server, under way."""
    made = Cloud()
    listening = make_server("127.0.0.1", 0, made, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    try:
        made.open(f"http://127.0.0.1:{listening.server_port}")
        yield made
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def _group(name: str, tags: dict[str, str]) -> str:
    told = "".join(
        f"<item><key>{escape(key)}</key><value>{escape(value)}</value></item>"
        for key, value in tags.items()
    )
    return (
        f"<groupName>{escape(name)}</groupName><state>available</state>"
        f"<strategy>cluster</strategy><tagSet>{told}</tagSet>"
    )


def _answer(action: str, inner: str) -> tuple[str, list[tuple[str, str]], bytes]:
    text = f"<{action}Response {XMLNS}><requestId>r</requestId>{inner}</{action}Response>"
    return "200 OK", [("Content-Type", "text/xml")], text.encode()


def _refusal(code: str, status: int) -> tuple[str, list[tuple[str, str]], bytes]:
    text = (
        f"<Response><Errors><Error><Code>{code}</Code><Message>as the test says</Message></Error>"
        "</Errors><RequestID>r</RequestID></Response>"
    )
    return f"{status} as the test says", [("Content-Type", "text/xml")], text.encode()
