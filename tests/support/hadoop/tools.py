"""Hadoop's own TeraSort tools, run in one process without a cluster: an independent reference.

They read every file of a directory but those whose names begin with `_` or `.`, in the order of
the names, and take each for a whole number of 100-byte records.
"""

import itertools
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.cli.processes import PATIENCE_SECONDS
from support.stores.disk import ROOT, disk_dir

JARS = ROOT / ".tools" / "hadoop"

JVM = (
    # These runs last a second or two; most of it is the start.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx1g",
    # A failed job says why at this level, and nothing below it is of use.
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.hadoop.util.NativeCodeLoader=error",
)


class HadoopError(Exception):
    """A tool that ended in failure, with what it said."""


@dataclass(frozen=True)
class Validation:
    """What TeraValidate found: the sum of the records' CRC32s, and each misorder."""

    ok: bool
    checksum: str
    errors: list[str]


def teragen(records: int, directory: Path) -> None:
    """Write `records` records into the new directory's one file, `part-m-00000`."""
    _run("TeraGen", str(records), directory)


def gensort(
    records: int, file: Path, *, ascii: bool = False, start: int = 0, timeout: float = 240
) -> None:
    """Write `records` records, the first of them number `start`, into `file`."""
    options = ["-a"] if ascii else []
    _java("GenSort", *options, f"-b{start}", str(records), file, cwd=file.parent, timeout=timeout)


def terasort(input_dir: Path, output_dir: Path, *, reducers: int = 1) -> None:
    """Sort a directory into a new one's `part-r-*`, a file for each reducer."""
    _run("TeraSort", input_dir, output_dir, properties={"mapreduce.job.reduces": reducers})


def teravalidate(directory: Path) -> Validation:
    """Check that a directory's files, in the order of their names, are in the order of keys."""
    with disk_dir("validate-") as scratch:
        report = scratch / "report"
        _run("TeraValidate", directory, report)
        return _validation(report)


@contextmanager
def judge() -> Iterator[Callable[[Path], Validation]]:
    """`teravalidate` in one process for as many directories as there are to be."""
    source = ROOT / "tests" / "support" / "hadoop" / "judge" / "Judge.java"
    with (
        disk_dir("judge-") as scratch,
        (scratch / "said").open("w") as said,
        subprocess.Popen(
            ["java", *JVM, "-cp", f"{JARS}/*", source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            cwd=scratch,
        ) as process,
    ):
        assert process.stdin and process.stdout
        asked, answers, numbers = process.stdin, process.stdout, itertools.count()

        def judged(directory: Path) -> Validation:
            report = scratch / f"report-{next(numbers)}"
            words = [*_settings(scratch), str(directory), str(report)]
            print("\t".join(words), file=asked, flush=True)
            code = answers.readline().strip()
            if not (report / "part-r-00000").exists():
                why = (scratch / "said").read_text()
                raise HadoopError(f"TeraValidate ended with {code or 'its process'}\n{why}")
            return _validation(report)

        try:
            yield judged
        finally:
            asked.close()
            process.wait(PATIENCE_SECONDS)


def _validation(report: Path) -> Validation:
    text = (report / "part-r-00000").read_text()
    checksum, errors = "0", []  # For no records at all Hadoop prints nothing.
    for line in text.splitlines():
        key, tab, value = line.partition("\t")
        if key == "checksum":
            checksum = value
        elif tab:
            errors.append(value)
        else:
            errors[-1] += "\n" + line  # A misorder between files takes three lines.
    return Validation(ok=not errors, checksum=checksum, errors=errors)


def terachecksum(directory: Path) -> str:
    """The sum of the records' CRC32s, in hexadecimal."""
    with disk_dir("checksum-") as scratch:
        report = scratch / "report"
        _run("TeraChecksum", directory, report)
        return (report / "part-r-00000").read_text().strip()


def _run(tool: str, *args: str | Path, properties: dict[str, int] | None = None) -> None:
    """Run one of the tools that are jobs, with its temporary files in a place of its own."""
    with disk_dir("hadoop-") as scratch:
        _java(tool, *_settings(scratch, properties), *args, cwd=scratch)


def _settings(scratch: Path, properties: dict[str, int] | None = None) -> list[str]:
    """The settings of each of those tools, with a directory of its own for temporary files."""
    settings = {
        "mapreduce.framework.name": "local",
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": scratch,
        # Which is otherwise one directory under /tmp, its first user's.
        "mapreduce.jobtracker.staging.root.dir": scratch / "staging",
        # Ask after a job more often than once in five seconds.
        "mapreduce.client.completion.pollinterval": 20,
        "mapreduce.client.progressmonitor.pollinterval": 20,
    } | (properties or {})
    return [f"-D{key}={value}" for key, value in settings.items()]


def _java(tool: str, *args: str | Path, cwd: Path, timeout: float = 240) -> None:
    done = subprocess.run(
        ["java", *JVM, "-cp", f"{JARS}/*", f"org.apache.hadoop.examples.terasort.{tool}", *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=timeout,
    )
    if done.returncode != 0:
        raise HadoopError(f"{tool} ended with {done.returncode}\n{done.stdout}{done.stderr}")
