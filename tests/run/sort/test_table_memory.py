"""`run sort --by` with memory for a tenth of the data, as the kernel counts it.

Every format, codec and kind of key. The data is what rows take in memory, not their files.
"""

import bz2
import gzip
import itertools
import json
import random
import string
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pq
import pytest

from support.cli import processes
from support.cli.command import Tonnage

MIB = 1 << 20
ROWS = 2_000_000
MEMORY = 32 * MIB
BATCH_ROWS = 40_000
PARQUET = ("none", "snappy", "zstd", "gzip", "lz4", "brotli")
KEYS = ("int", "float", "text", "decimal", "time", "word")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Rows of some 130 bytes, whose values are random enough not to compress to nothing."""
    rng = np.random.default_rng(7)
    random_text = random.Random(7)
    texts = pa.array(
        "".join(random_text.choices(string.ascii_letters, k=random_text.randrange(90)))
        for _ in range(3000)
    )
    numbers = pa.array(rng.integers(-(2**40), 2**40, ROWS))

    def some_texts(of: int) -> pa.Array:
        return texts.take(pa.array(rng.integers(0, of, ROWS)))

    return pa.table(
        {
            "int": numbers,
            "float": pa.array(rng.normal(size=ROWS).astype("float32")),
            "text": some_texts(3000),
            "decimal": numbers.cast(pa.decimal128(22, 3)),
            "time": pc.abs(numbers).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
            "word": some_texts(500).dictionary_encode(),
            "payload": some_texts(3000),
        }
    )


def write_parquet(table: pa.Table, path: Path, codec: str, rows: int = 1 << 20) -> None:
    pq.write_table(table, path, compression=codec, row_group_size=rows)


def write_arrow(
    table: pa.Table, path: Path, codec: str | None, batch_rows: int = BATCH_ROWS
) -> None:
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=batch_rows)


def sort_within(
    tonnage: Tonnage, disk: Path, *arguments: str | Path, rows: int = ROWS
) -> dict[str, Any]:
    """Sorts so many rows within the memory; gives the record."""
    where = ("--output", disk / "out", "--scratch", disk / "scratch")
    command = [tonnage.path, "run", "sort", *arguments, *where, f"--memory={MEMORY}", "--json"]
    used = processes.run_with_usage(command)
    assert used.returncode == 0, used.out
    assert used.peak_memory_bytes <= MEMORY + processes.MAX_OVERHEAD_BYTES
    record: dict[str, Any] = json.loads(used.out)
    assert record["records"] == record["written_records"] == rows
    return record


def long_rows(shape: str) -> pa.Table:
    """Rows of 16 to 30 KiB that take little in a file: values repeat, or begin alike."""
    rng = np.random.default_rng(7)
    rows = 12_000
    words = pa.array(f"{word:05}" * 6000 for word in range(40))
    of_words = pa.array(rng.integers(0, len(words), rows, dtype="int32"))
    column: Any = {
        "lists": lambda: pa.FixedSizeListArray.from_arrays(
            pa.array(np.zeros(rows * 2000, dtype="int64")), 2000
        ).cast(pa.list_(pa.int64())),
        "dictionaries": lambda: pa.DictionaryArray.from_arrays(of_words, words),
        "prefixes": lambda: pa.array(f"{'prefix' * 3000}{row}" for row in range(rows)),
    }[shape]()
    return pa.table({"int": rng.permutation(rows), "long": column})


def check_order(out: Path, column: str, descending: bool = False) -> None:
    """Every value of a sorted column is not less than the one before it."""
    last = None
    for part in sorted(out.glob("part-*")):
        kind = "parquet" if part.suffix == ".parquet" else "ipc"
        for batch in pa_dataset.dataset(part, format=kind).to_batches(columns=[column]):
            values = batch.column(0)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            if descending:
                values = values[::-1]
            later, earlier = values.slice(1), values.slice(0, max(len(values) - 1, 0))
            assert pc.all(pc.greater_equal(later, earlier)).as_py() in (True, None)
            if last is not None and len(values):
                ends = (values[-1], last) if descending else (last, values[0])
                assert pc.less_equal(*ends).as_py()
            if len(values):
                last = values[0] if descending else values[-1]


@pytest.mark.slow
@pytest.mark.parametrize("codec", PARQUET)
def test_parquet(tonnage: Tonnage, disk: Path, table: pa.Table, codec: str) -> None:
    write_parquet(table, disk / "in.parquet", codec)
    sort_within(tonnage, disk, disk / "in.parquet", "--by", "int,text")
    check_order(disk / "out", "int")


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_keys(tonnage: Tonnage, disk: Path, table: pa.Table, key: str) -> None:
    write_parquet(table, disk / "in.parquet", "snappy", ROWS)
    record = sort_within(tonnage, disk, disk / "in.parquet", "--by", f"-{key}", "--stable")
    assert record["shuffled_bytes"] > 8 * MEMORY
    check_order(disk / "out", key, descending=True)


@pytest.mark.slow
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_arrow(tonnage: Tonnage, disk: Path, table: pa.Table, codec: str | None) -> None:
    write_arrow(table, disk / "in.arrow", codec)
    sort_within(tonnage, disk, disk / "in.arrow", "--by", "text,time")
    check_order(disk / "out", "text")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "codec", "output"),
    [
        ("csv", "none", "csv"),
        ("csv", "none", "parquet"),
        ("csv", "none", "json"),
        ("csv", "gzip", "csv"),
        ("csv", "gzip", "parquet"),
        ("csv", "bzip2", "parquet"),
        ("tsv", "none", "tsv"),
        ("tsv", "none", "parquet"),
    ],
)
def test_csv(
    tonnage: Tonnage, disk: Path, table: pa.Table, name: str, codec: str, output: str
) -> None:
    columns = table.select(["int", "float", "time", "text", "payload"])
    options = pa_csv.WriteOptions(delimiter="\t" if name == "tsv" else ",")
    source = disk / f"in.{name}"
    opened: Any = {"none": open, "gzip": gzip.open, "bzip2": bz2.open}[codec]
    with opened(source, "wb") as file:
        pa_csv.write_csv(columns, file, options)
    sort_within(tonnage, disk, source, "--by", "-float", "--output-format", output)
    if output == "parquet":
        check_order(disk / "out", "float", descending=True)


@pytest.mark.slow
def test_json(tonnage: Tonnage, disk: Path, table: pa.Table) -> None:
    with (disk / "in.json").open("w") as file:
        for batch in table.select(["int", "text", "payload"]).to_batches():
            file.writelines(f"{json.dumps(row)}\n" for row in batch.to_pylist())
    sort_within(tonnage, disk, disk / "in.json", "--by", "int")
    keys = [
        json.loads(line)["int"]
        for part in sorted((disk / "out").glob("part-*"))
        for line in part.open()
    ]
    assert all(one <= other for one, other in itertools.pairwise(keys))


@pytest.mark.slow
def test_lines(tonnage: Tonnage, disk: Path, table: pa.Table) -> None:
    with (disk / "in.txt").open("w") as file:
        joined = pc.binary_join_element_wise(table["text"], table["payload"], "\n", " ")
        file.writelines(joined.to_pylist())
    sort_within(tonnage, disk, disk / "in.txt", "--by", "line")
    lines = [line for part in sorted((disk / "out").glob("part-*")) for line in part.open("rb")]
    assert all(one <= other for one, other in itertools.pairwise(lines))


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["lists", "dictionaries", "prefixes"])
@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_long_rows_in_short_files(tonnage: Tonnage, disk: Path, shape: str, name: str) -> None:
    rows = long_rows(shape)
    source = disk / f"in.{name}"
    if name == "arrow":
        write_arrow(rows, source, "zstd", batch_rows=200)
    elif shape == "prefixes":
        encoding = {"long": "DELTA_BYTE_ARRAY"}
        pq.write_table(rows, source, column_encoding=encoding, use_dictionary=False)
    else:
        pq.write_table(rows, source)
    record = sort_within(tonnage, disk, source, "--by", "int", rows=len(rows))
    assert record["shuffled_bytes"] > 20 * source.stat().st_size
    check_order(disk / "out", "int")


def with_a_long_row(path: Path, long_bytes: int) -> list[int]:
    """Write 60,000 rows in an Arrow file, one of them long; gives the sorted numbers of all."""
    numbers = np.random.default_rng(7).permutation(60_000)
    texts = ["short"] * len(numbers)
    texts[20_123] = "x" * long_bytes
    write_arrow(pa.table({"int": numbers, "text": texts}), path, None)
    return sorted(numbers.tolist())


@pytest.mark.parametrize("options", [(), ("--stable", "--unique"), ("--limit=60000",)])
def test_a_row_longer_than_blocks(tonnage: Tonnage, disk: Path, options: tuple[str, ...]) -> None:
    numbers = with_a_long_row(disk / "in.arrow", 900_000)
    sort_within(tonnage, disk, disk / "in.arrow", "--by", "int", *options, rows=len(numbers))
    out = pa_dataset.dataset(disk / "out" / "part-00000.arrow", format="ipc").to_table()
    for part in sorted((disk / "out").glob("part-*"))[1:]:
        out = pa.concat_tables([out, pa_dataset.dataset(part, format="ipc").to_table()])
    assert out["int"].to_pylist() == numbers
    lengths = pc.value_counts(pc.binary_length(out["text"])).to_pylist()
    assert {(each["values"], each["counts"]) for each in lengths} == {(5, 59_999), (900_000, 1)}


def test_a_row_too_long_for_the_memory(tonnage: Tonnage, disk: Path) -> None:
    with_a_long_row(disk / "in.arrow", 6_000_000)
    where = ("--output", disk / "out", "--scratch", disk)
    refused = tonnage.run(
        "run", "sort", disk / "in.arrow", "--by=int", *where, "--memory=64MiB", check=False
    )
    assert refused.returncode == 2
    assert "are not enough for rows of up to 60000" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (disk / "out").exists()
