"""`gensort` and `valsort`: the records that are made, and the verdict on those that are read."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cli.command import Tonnage
from support.data.records import blob, checksum, content, cut, key_of
from support.stores.disk import disk_dir
from tonnage.run.sort.gensort import generate, validate
from tonnage.run.sort.local import Layout

ASCII_RECORD_0 = (
    b"AsfAGHM5om  00000000000000000000000000000000  "
    b"0000222200002222000022220000222200002222000000001111\r\n"
)
"""As the sort benchmark's own pages show it."""


def test_the_first_ascii_record_is_the_published_one(tonnage: Tonnage, disk: Path) -> None:
    tonnage.run("gensort", "1", disk / "a", "--ascii", check=True)
    assert (disk / "a").read_bytes() == ASCII_RECORD_0


@pytest.mark.parametrize("kind", [{}, {"ascii_records": True}, {"skew": True}], ids=str)
def test_record_n_is_the_same_in_whatever_file(disk: Path, kind: dict[str, bool]) -> None:
    made = generate(1001, [disk / "all"], **kind)
    assert (made["records"], made["bytes"]) == (1001, 100_100)
    whole = (disk / "all").read_bytes()
    assert len(set(cut(whole, 100))) == 1001

    shared = [disk / "one", disk / "two", disk / "three"]
    generate(1001, shared, **kind)
    assert content(shared) == whole
    assert [path.stat().st_size for path in shared] == [33_400, 33_400, 33_300]

    generate(501, [disk / "tail"], start=500, **kind)
    assert (disk / "tail").read_bytes() == whole[50_000:]
    assert sorted(path.name for path in disk.iterdir()) == ["all", "one", "tail", "three", "two"]


def test_kinds_differ_and_ascii_can_be_printed(disk: Path) -> None:
    made = []
    for number, (ascii_records, skew) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        path = disk / str(number)
        generate(1000, [path], ascii_records=bool(ascii_records), skew=bool(skew))
        made.append(path.read_bytes())
    assert len(set(made)) == 4
    for text in made[2:]:
        assert text.decode("ascii").replace("\r\n", "").isprintable()
        assert all(record.endswith(b"\r\n") for record in cut(text, 100))
    first_bytes = [len({record[0] for record in cut(data, 100)}) for data in made]
    assert first_bytes[1] < first_bytes[0] and first_bytes[3] < first_bytes[2]


def test_flags_ask_for_the_kinds(tonnage: Tonnage, disk: Path) -> None:
    generate(100, [disk / "expected"], start=7, ascii_records=True, skew=True)
    flags = ("--ascii", "--skew", "--start", "7")
    said = tonnage.run("gensort", "100", disk / "a", disk / "b", *flags, check=True)
    assert said.stdout.startswith("100 records, 10000 bytes, ")
    assert content([disk / "a", disk / "b"]) == (disk / "expected").read_bytes()


def test_numbers_go_up_to_128_bits(tonnage: Tonnage, disk: Path) -> None:
    last = (1 << 128) - 1
    tonnage.run("gensort", "1", disk / "last", "--start", str(last), check=True)
    tonnage.run("gensort", "2", disk / "both", "--start", str(last - 1), check=True)
    assert (disk / "both").read_bytes()[100:] == (disk / "last").read_bytes()


def test_a_file_that_was_there_is_replaced_whole(tonnage: Tonnage, disk: Path) -> None:
    (disk / "a").write_bytes(b"old" * 1000)
    (disk / ".a.unfinished").write_bytes(b"left by a killed run")
    tonnage.run("gensort", "2", disk / "a", check=True)
    assert (disk / "a").stat().st_size == 200
    assert [path.name for path in disk.iterdir()] == ["a"]


def test_no_records_is_an_empty_file(tonnage: Tonnage, disk: Path) -> None:
    tonnage.run("gensort", "0", disk / "a", check=True)
    assert (disk / "a").read_bytes() == b""
    found = json.loads(tonnage.run("valsort", disk / "a", "--json", check=True).stdout)
    assert (found["records"], found["checksum"], found["unordered"]) == (0, "0", 0)


def test_order_is_told_in_words_and_in_json(tonnage: Tonnage, disk: Path) -> None:
    records = sorted(cut(blob(1, 50_000), 100))
    (disk / "in-order").write_bytes(b"".join(records))
    said = tonnage.run("valsort", disk / "in-order")
    assert (said.returncode, said.stderr) == (0, "")
    assert "Records: 500\n" in said.stdout
    assert f"Checksum: {checksum(records)}\n" in said.stdout
    assert "SUCCESS" in said.stdout

    records[100], records[101] = records[101], records[100]
    (disk / "swapped").write_bytes(b"".join(records))
    said = tonnage.run("valsort", disk / "swapped")
    assert (said.returncode, said.stderr) == (1, "")
    assert "First unordered record is record 101\n" in said.stdout
    assert "SUCCESS" not in said.stdout
    said = tonnage.run("valsort", disk / "swapped", "--json")
    found = json.loads(said.stdout)
    assert (said.returncode, found["unordered"], found["first_unordered"]) == (1, 1, 101)


def test_files_are_one_sequence_and_directories_go_by_name(tonnage: Tonnage, disk: Path) -> None:
    low, middle, high = (bytes([value]) * 100 for value in (1, 2, 3))
    for name in ("a", "b"):
        (disk / name).mkdir()
    (disk / "a" / "part-00000").write_bytes(low)
    (disk / "b" / "part-00001").write_bytes(middle)
    (disk / "a" / "part-00002").write_bytes(high)
    (disk / "a" / "_list").write_bytes(b"no record")
    (disk / "a" / ".hidden").write_bytes(b"no record")

    found = json.loads(tonnage.run("valsort", disk / "b", disk / "a", "--json", check=True).stdout)
    assert (found["records"], found["checksum"]) == (3, checksum([low, middle, high]))
    # Each file alone is in order; what lies between them is judged too.
    files = [disk / "b" / "part-00001", disk / "a" / "part-00000"]
    said = tonnage.run("valsort", *files, "--json")
    assert (said.returncode, json.loads(said.stdout)["unordered"]) == (1, 1)

    # What would be left out is refused, not passed over.
    (disk / "b" / "nested").mkdir()
    said = tonnage.run("valsort", disk / "b", disk / "a")
    assert said.returncode == 2
    assert f"{disk}/b/nested is not a regular file" in said.stderr


def test_a_part_of_an_output_is_not_taken_for_the_whole(tonnage: Tonnage, disk: Path) -> None:
    tonnage.run("gensort", "60000", disk / "in", check=True)
    outputs = (disk / "one", disk / "two")
    sorted_to = ("--output", *outputs, "--scratch", disk / "scratch", "--memory", "16MiB")
    tonnage.run("run", "sort", disk / "in", *sorted_to, check=True)
    assert tonnage.run("valsort", *outputs).returncode == 0
    said = tonnage.run("valsort", outputs[1])
    assert said.returncode == 2
    assert "part-00000 is missing; specify all directories" in said.stderr


@settings(max_examples=40, derandomize=True)
@given(
    record_bytes=st.integers(1, 120),
    counts=st.lists(st.integers(0, 400), min_size=1, max_size=4),
    alphabet=st.sampled_from([1, 2, 5, 256]),
    in_order=st.booleans(),
    seed=st.integers(0, 1 << 30),
    key=st.data(),
)
def test_valsort_agrees_with_a_loop_over_the_records(
    record_bytes: int,
    counts: list[int],
    alphabet: int,
    in_order: bool,
    seed: int,
    key: st.DataObject,
) -> None:
    offset = key.draw(st.integers(0, record_bytes - 1), label="key offset")
    length = key.draw(st.integers(1, record_bytes - offset), label="key length")
    layout = Layout(record_bytes=record_bytes, key_offset=offset, key_bytes=length)
    records = cut(blob(seed, sum(counts) * record_bytes, alphabet), record_bytes)
    if in_order:
        records.sort(key=lambda record: key_of(record, layout))
    with disk_dir() as disk:
        rest = iter(records)
        paths = []
        for number, count in enumerate(counts):
            paths.append(disk / str(number))
            paths[-1].write_bytes(b"".join(next(rest) for _ in range(count)))
        found = validate(paths, layout=layout)
    keys = [key_of(record, layout) for record in records]
    pairs = list(itertools.pairwise(keys))
    unordered = [place for place, (before, after) in enumerate(pairs, 1) if before > after]
    assert found["records"] == len(records)
    assert found["checksum"] == checksum(records)
    assert found["unordered"] == len(unordered)
    assert found["first_unordered"] == (unordered[0] if unordered else None)
    assert found["duplicate_keys"] == sum(before == after for before, after in pairs)
    assert (found["unordered"] == 0) or not in_order
