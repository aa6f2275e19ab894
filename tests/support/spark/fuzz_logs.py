"""Fuzz the reader of event logs: change recorded logs, and read them.

    python tests/support/spark/fuzz_logs.py --seconds 60 [--seed 1]

Whatever a log contains, it is read as a valid record, or refused in one line. The first violation
is stored and shown, with its seed.
"""

import argparse
import io
import json
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from support.data.fuzz_importers import ODD_VALUES, mutated
from tonnage.base.records.application import Application
from tonnage.cli.output.observed_runs.application import application_lines
from tonnage.measure.importers.metric import UnreadableFile
from tonnage.measure.importers.spark.log_files import EventLog, LogFile, lines
from tonnage.measure.importers.spark.read import read_event_log

LOGS = sorted((Path(__file__).resolve().parents[1] / "recorded" / "spark").iterdir())


def text_lines(path: Path) -> list[bytes]:
    """The lines of a recorded log, decompressed."""
    with path.open("rb") as file:
        return [*lines(file)]


def read(content: bytes) -> Application:
    return read_event_log(EventLog("log", [LogFile("log", lambda: io.BytesIO(content))]))


def check(content: bytes) -> str:
    """Read a log: "read" or "refused", or an exception if it is neither."""
    try:
        application = read(content)
    except UnreadableFile as why:
        assert str(why).isprintable() and str(why).startswith("log: expected "), str(why)
        return "refused"
    assert Application.from_json(application.to_json()) == application
    assert all(line.isprintable() for line in application_lines(application))
    return "read"


def changed_log(chance: random.Random) -> bytes:
    """A recorded log with a change of its bytes, compressed or not, or of values in its events."""
    path = chance.choice(LOGS)
    match chance.randrange(3):
        case 0:
            content = path.read_bytes()
            return mutated(chance, content, {path: content})
        case 1:
            content = b"\n".join(text_lines(path))
            return mutated(chance, content, {path: content})
        case _:
            return _with_other_values(chance, text_lines(path))


def _with_other_values(chance: random.Random, content: list[bytes]) -> bytes:
    for _ in range(chance.choice((1, 1, 2, 5))):
        place = chance.randrange(len(content))
        try:
            holder = event = json.loads(content[place])
            key = chance.choice(sorted(event))
            while isinstance(holder[key], dict) and holder[key] and chance.random() < 0.8:
                holder = holder[key]
                key = chance.choice(sorted(holder))
            holder[key] = chance.choice(ODD_VALUES)
            content[place] = json.dumps(event).encode()
        except ValueError:  # A number that is too long to be written.
            continue
    return b"\n".join(content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    until = time.monotonic() + arguments.seconds
    outcomes = Counter[str]()
    while time.monotonic() < until:
        content = changed_log(chance)
        try:
            outcomes[check(content)] += 1
        except Exception as why:
            kept = Path(tempfile.mkdtemp(prefix="fuzz-")) / "log"
            kept.write_bytes(content)
            raise SystemExit(f"seed {arguments.seed}, {outcomes.total()}: {kept}: {why!r}") from why
    print(f"{outcomes.total()} logs: {dict(outcomes)}")


if __name__ == "__main__":
    main()
