"""Build the shell commands that set up a reachable node.

A node receives Tonnage's wheel, installs it with Ray (`rental`), and starts Ray, which needs
the launch's token. Commands find both through ``~/tonnage/environment``.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path

from tonnage.base.records.environment import MACHINE_TYPE, PROVIDER
from tonnage.provision.export.ray import VERSION
from tonnage.provision.rental import WHEELS, Rental

PORT = 6379
"""The port of Ray's head."""
HOME = "~/tonnage"
WHEEL_PLACE = next(iter(WHEELS))
MOUNTED = "/run/tonnage-disks"
"""Exists once all disks of a node are mounted."""
BOOT_SECONDS = 600.0
"""Time limit for creating file systems on a node's disks."""
ALIVE = """
import ray
ray.init(address="auto", logging_level="ERROR", log_to_driver=False)
print(*(node["NodeName"] for node in ray.nodes() if node["Alive"]), sep=" ")
"""
LIST_NODES = f". {HOME}/environment && python -c {shlex.quote(ALIVE)}"
"""Print the names of the cluster's nodes in the last line."""
PING = "true"
RECEIVE_TOKEN = "umask 077 && mkdir -p ~/.ray && cat > ~/.ray/auth_token"
"""Store Ray's token from stdin."""
WAIT_FOR_DISKS = (
    "if command -v cloud-init > /dev/null; then cloud-init status --wait > /dev/null || true; "
    f"fi; test -e {MOUNTED} || {{ tail -n 3 /var/log/cloud-init-output.log >&2; exit 1; }}"
)
"""Wait until the disks are mounted or mounting failed, as cloud-init reports."""
FALLBACK_DIRECTORY = "/var/tmp"
"""The directory to measure on a node without data disks."""


def receive_wheel(wheel: Path) -> str:
    """Store the wheel from stdin in place of any other."""
    place = f"{WHEEL_PLACE}/{shlex.quote(wheel.name)}"
    return f"mkdir -p {WHEEL_PLACE} && rm -f {WHEEL_PLACE}/*.whl && cat > {place}"


def install(rental: Rental) -> str:
    return rental.install(f"ray[default]=={VERSION}")


def environment(head: str) -> str:
    """Write the environment that finds Ray, and source it in the user's shells."""
    lines = {
        "PATH": f"{HOME}/bin:$PATH",
        "RAY_ADDRESS": f"{head}:{PORT}",
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Measuring has priority.
        "RAY_worker_niceness": "0",
    }
    text = "".join(f"export {name}={value}\n" for name, value in lines.items())
    own = f". {HOME}/environment"
    return (
        f"cat > {HOME}/environment <<'END'\n{text}END\n"
        f"grep -qxF '{own}' ~/.bashrc 2> /dev/null || echo '{own}' >> ~/.bashrc\n"
    )


def start_ray(address: str, name: str, head: str | None, labels: Mapping[str, str]) -> str:
    """Start Ray on the node of this private address; ``head`` is ``None`` on the head."""
    variables = {
        "address": address,
        "name": name,
        "head": head or "",
        "port": str(PORT),
        "labels": ",".join(f"{key}={value}" for key, value in labels.items()),
    }
    script = (Path(__file__).parent / "start_ray.sh").read_text()
    return "".join(f"{key}={shlex.quote(value)}\n" for key, value in variables.items()) + script


def labels(rental: Rental, zone: str | None) -> dict[str, str]:
    """Labels that state what was rented, for measurements."""
    known = {
        PROVIDER: rental.candidate.provider,
        MACHINE_TYPE: rental.offer.type,
        "region": rental.offer.region,
        "zone": zone,
        "market": "spot" if rental.spot else "on-demand",
    }
    return {name: value for name, value in known.items() if value}


def screen(
    rental: Rental, number: int, size_bytes: int, seconds: float, patience_seconds: float
) -> str:
    """Screen all nodes from the head; prints JSON.

    A disk trial moves at most ``size_bytes``. A node is lost if silent for ``patience_seconds``.
    """
    options = ["--size", str(size_bytes), "--seconds", f"{seconds:g}"]
    options += ["--cluster", "auto", "--json", "--timeout", f"{patience_seconds:g}s"]
    options += [word for place in disk_directories(rental) for word in ("--dir", place)]
    out = f"{HOME}/screening-{number}"
    return (
        f". {HOME}/environment && rm -rf {out} && "
        f"tonnage measure screen --output {out} {shlex.join(options)}"
    )


def disk_directories(rental: Rental) -> list[str]:
    """The mount points of a node's disks; only the first if their number is unknown."""
    own = 1 if rental.local_disks is None else rental.local_disks
    attached = rental.candidate.volumes.count if rental.candidate.volumes else 0
    directories = [f"/tonnage/local-{at}" for at in range(own)]
    directories += [f"/tonnage/volume-{at}" for at in range(attached)]
    return directories or [FALLBACK_DIRECTORY]


def run_command(command: list[str]) -> str:
    return f". {HOME}/environment && exec {shlex.join(command)}"
