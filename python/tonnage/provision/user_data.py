"""Build user-data: the script that a machine runs as root when it first starts (cloud-init).

It schedules the machine's own end first, since later steps may fail, and then mounts its disks.
"""

from datetime import datetime
from pathlib import Path

from tonnage.provision.rental import Rental


def user_data(rental: Rental, ends_at: datetime | None = None) -> str:
    """The script; empty if there is nothing to do.

    Args:
        ends_at: When the machine shuts itself down; never by default.
    """
    script = ""
    if ends_at is not None:
        lifetime = (Path(__file__).parent / "shutdown_timer.sh").read_text()
        script += f"ends_at={int(ends_at.timestamp())}\n{lifetime}"
    if rental.has_disks:
        script += rental.mount()
    return script and f"#!/bin/bash\n{script}"
