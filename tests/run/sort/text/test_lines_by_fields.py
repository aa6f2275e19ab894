"""`run sort --by` of lines by their fields: as GNU sort with -k N,N, -n, -r, -t, -s and -u."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.stores.disk import disk_dir
from tonnage.base import core
from tonnage.measure.trial import environment
from tonnage.run.sort.dialect import Dialect
from tonnage.run.sort.tables import TableOrder, sort_table

MIB = 1 << 20


def sorted_lines(disk: Path, source: Path, order: TableOrder) -> bytes:
    sort_table(
        [source],
        [disk / "out"],
        [disk / "scratch"],
        order=order,
        memory_bytes=32 * MIB,
        environment=environment.capture([disk]),
        began_at="now",
        command=["test"],
    )
    return b"".join(path.read_bytes() for path in sorted((disk / "out").glob("part-*.txt")))


def gnu_sort(source: Path, *arguments: str) -> bytes:
    """GNU sort by bytes; lines with equal keys stay in their order."""
    command = ["sort", "-s", *arguments, str(source)]
    return subprocess.run(
        command, check=True, capture_output=True, env=os.environ | {"LC_ALL": "C"}
    ).stdout


NUMBERS = ("0", "-0", "00.50", "-1.5", "1.50", "12", "9", "-7", "+3", "1e3", "x1", "", "3x", "0.05")
LONG = ("123456789012345678901234567890", "123456789012345678901234567891", "-.5", ".5", "1.")
WORDS = ("b", "a", "ab", "B", "\x01", "é", "a-b", "zz")


def a_line(rng: random.Random, separator: str) -> str:
    number = rng.choice(NUMBERS + LONG) if rng.random() < 0.5 else str(rng.gauss(0, 1000))
    fields = [rng.choice(WORDS), number, rng.choice(WORDS)]
    return separator.join(fields[: rng.choice([1, 2, 3, 3, 3])])


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("2:numeric", ["-k2b,2n"]),
        ("-2:numeric,1", ["-k2b,2nr", "-k1b,1"]),
        ("3,-1", ["-k3b,3", "-k1b,1r"]),
        ("-3,2:numeric", ["-k3b,3r", "-k2b,2n"]),
        ("line:numeric", ["-n"]),
        ("-line", ["-r"]),
    ],
)
def test_blanks_separate_fields(by: str, keys: list[str]) -> None:
    rng = random.Random(13)
    with disk_dir() as disk:
        lines = [
            rng.choice(["", "  "]) + a_line(rng, rng.choice([" ", "\t", "   "]))
            for _ in range(20_000)
        ]
        source = disk / "in.txt"
        source.write_text("".join(line + "\n" for line in lines))
        got = sorted_lines(disk, source, TableOrder(by=by, stable=True))
        assert got == gnu_sort(source, *keys)


@pytest.mark.parametrize("by", ["2:numeric", "-2", "3,1"])
def test_a_delimiter_separates_fields_and_one_of_equal_keys_stays(by: str) -> None:
    rng = random.Random(17)
    keys = {"2:numeric": ["-k2,2n"], "-2": ["-k2,2r"], "3,1": ["-k3,3", "-k1,1"]}[by]
    with disk_dir() as disk:
        source = disk / "in.log"
        source.write_text("".join(a_line(rng, ":") + "\n" for _ in range(20_000)))
        order = TableOrder(by=by, stable=True, unique=True, dialect=Dialect(delimiter=":"))
        assert sorted_lines(disk, source, order) == gnu_sort(source, "-u", "-t:", *keys)


@pytest.mark.parametrize(
    ("by", "delimiter", "message"),
    [
        ("name", None, "lines are sorted by 'line', or by numbers of fields such as 2 or 2:num"),
        ("0", None, "lines are sorted by 'line', or by numbers of fields"),
        ("2:nulls-first", None, "not by '2' with nulls"),
        ("2", "::", "'::' is no delimiter; use one character"),
    ],
)
def test_other_fields_are_refused(by: str, delimiter: str | None, message: str) -> None:
    with disk_dir() as disk:
        (disk / "in.txt").write_text("a b\n")
        with pytest.raises(core.UsageError, match=message):
            sorted_lines(
                disk, disk / "in.txt", TableOrder(by=by, dialect=Dialect(delimiter=delimiter))
            )
        assert not (disk / "out").exists()


def test_the_command_takes_fields_and_a_delimiter(tonnage: Tonnage) -> None:
    with disk_dir() as disk:
        (disk / "in.txt").write_text("a:10\nb:9\n")
        out = ["--output", str(disk / "out"), "--scratch", str(disk / "tmp")]
        by = ["--by", "2:numeric", "--delimiter", ":"]
        ended = tonnage.run("run", "sort", str(disk / "in.txt"), *by, *out)
        assert ended.returncode == 0, ended.stderr
        parts = sorted((disk / "out").glob("part-*.txt"))
        assert "".join(part.read_text() for part in parts) == "b:9\na:10\n"


def test_bytes_of_lines_are_kept() -> None:
    """NUL, CR, a byte order mark, no UTF-8, and a last line without its newline."""
    lines = [b"\xef\xbb\xbfb 2", b"a\0 10\r", b"\xff 1", b"", b"c\r\r 3"]
    with disk_dir() as disk:
        (disk / "in.txt").write_bytes(b"\n".join(lines))
        got = sorted_lines(disk, disk / "in.txt", TableOrder(by="2:numeric"))
        assert got == b"\n".join([lines[3], lines[2], lines[0], lines[4], lines[1], b""])
