"""`run sort --partition-by`: Hive's folders, each sorted, that other readers and sorts read back.

The model groups rows in Python; PyArrow and DuckDB read the folders.
"""

import io
import json
import os
import random
from collections import defaultdict
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tonnage as package
from support.cli.command import Tonnage
from support.stores.disk import disk_dir
from support.stores.s3 import BUCKET, Bucket
from tonnage.base import core

NULL = "__HIVE_DEFAULT_PARTITION__"
TEXTS = st.text("ab\0\x01\x7fä𝄞/=%.: \\'*", max_size=6)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), TEXTS),
    "large": (pa.large_string(), TEXTS),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), TEXTS),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "boolean": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(9, 2), st.decimals(-(10**6), 10**6, places=2)),
    "date": (pa.date32(), st.dates()),
    "time": (pa.time64("us"), st.times()),
    "micros": (pa.timestamp("us"), st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))),
    "millis": (pa.timestamp("ms"), st.integers(0, 2**41)),
}


def parts(directory: Path) -> list[Path]:
    """The files that the manifest lists, in order: all that are there."""
    listed = json.loads((directory / "_tonnage.json").read_text())["parts"]
    there = [str(path.relative_to(directory)) for path in directory.rglob("part-*")]
    assert sorted(listed) == sorted(there)
    return [directory / part for part in listed]


def folders(directory: Path) -> dict[str, pa.Table]:
    """The rows of each folder, of its files by name."""
    tables = defaultdict(list)
    for path in sorted(directory.rglob("part-*")):
        table = pq.read_table(path, partitioning=None)
        tables[str(path.parent.relative_to(directory))].append(table)
    return {folder: pa.concat_tables(each) for folder, each in tables.items()}


def value_of(name: str, column: str, data_type: pa.DataType) -> Any:
    """The value that a folder's name tells."""
    assert name.startswith(f"{column}=") and "/" not in name
    text = name.removeprefix(f"{column}=")
    if text == NULL:
        return None
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    if pa.types.is_time(data_type):
        return time.fromisoformat(unquote(text))
    return pa.array([unquote(text)]).cast(data_type)[0].as_py()


def rows(table: pa.Table, names: list[str]) -> list[tuple[Any, ...]]:
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True), key=repr)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    columns = {}
    count = draw(st.integers(0, 60))
    for name in ("p", "q"):
        data_type, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        few = draw(st.lists(st.none() | values, min_size=1, max_size=6))
        drawn = draw(st.lists(st.sampled_from(few), min_size=count, max_size=count))
        plain = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
        columns[name] = pa.array(drawn, plain).cast(data_type)
    keys = draw(st.lists(st.none() | st.integers(0, 9), min_size=count, max_size=count))
    return pa.table(columns | {"k": pa.array(keys, pa.int32()), "i": pa.array(range(count))})


@settings(max_examples=40, deadline=None)
@given(tables(), st.booleans(), st.sampled_from(["k", "-k,q", "p,-k:nulls-first"]))
def test_each_folder_has_its_rows_in_order(table: pa.Table, unique: bool, by: str) -> None:
    with disk_dir() as directory:
        out = directory / "out"
        package.sort(
            table,
            by,
            output=out,
            scratch=directory,
            output_format="parquet",
            partition_by=["p", "q"],
            stable=True,
            unique=unique,
            memory="8MiB",
            file_bytes=400,
        )
        parts(out)
        got = folders(out)
    found = {}
    kinds = [table.schema.field(name).type for name in ("p", "q")]
    for folder, each in got.items():
        assert each.column_names == ["k", "i"]
        if table.num_rows:
            p, q = folder.split("/")
            found[value_of(p, "p", kinds[0]), value_of(q, "q", kinds[1])] = each.to_pylist()
    assert len(found) == len(got) or not table.num_rows
    wanted = defaultdict(list)
    for row in table.to_pylist():
        wanted[row["p"], row["q"]].append({"k": row["k"], "i": row["i"]})
    sign = -1 if "-k" in by else 1
    null = -100 if "nulls-first" in by else 100
    for key, each in wanted.items():
        each.sort(key=lambda row: null if row["k"] is None else sign * row["k"])
        if unique:
            firsts = {row["k"]: row for row in reversed(each)}
            wanted[key] = [row for row in each if firsts[row["k"]] is row]
    assert found == wanted


def sample(count: int = 20_000) -> pa.Table:
    rng = random.Random(3)
    texts = ["DE", "a/b", "", "..", "x=%", "a\0", "a", "a\0b", "ü ", None]
    days = [date(2026, 1, day) for day in range(1, 5)]
    return pa.table(
        {
            "country": rng.choices(texts, k=count),
            "k": [rng.randrange(1000) for _ in range(count)],
            "day": pa.array(rng.choices(days, k=count), pa.date32()),
            "i": range(count),
        }
    )


NAMES = ["country", "day", "k", "i"]


def test_other_readers_and_a_sort_read_it_back(tonnage: Tonnage, disk: Path) -> None:
    table = sample()
    pq.write_table(table, disk / "a.parquet")
    common = ("--scratch", disk / "tmp", "--memory=8MiB")
    both = [disk / "one", disk / "two"]
    tonnage.run(
        *("run", "sort", disk / "a.parquet", "--by=k", "--stable", "--partition-by=country,day"),
        *("--file-size=20KB", "--output", *both, *common),
        check=True,
    )
    assert all(list(each.rglob("part-*")) for each in both)
    schema = pa.schema([("country", pa.string()), ("day", pa.date32())])
    hive = ds.partitioning(schema, flavor="hive")
    got = pa.concat_tables(ds.dataset(each, partitioning=hive).to_table() for each in both)
    assert rows(got, NAMES) == rows(table, NAMES)
    globs = [f"{each}/**/*.parquet" for each in both]
    relation = duckdb.sql(f"from read_parquet({globs}, hive_partitioning=true)")
    assert rows(relation.to_arrow_table(), NAMES) == rows(table, NAMES)
    again = tonnage.run(
        *("run", "sort", *both, "--by=country,day,k,i", "--columns", ",".join(NAMES)),
        *("--schema=day:date32", "--output", disk / "again", *common),
    )
    assert again.returncode == 0, again.stderr
    whole = pa.concat_tables([pq.read_table(part) for part in parts(disk / "again")])
    assert rows(whole, NAMES) == rows(table, NAMES)
    refused = tonnage.run("run", "sort", both[0], "--by=k", "--output", disk / "no", *common)
    assert refused.returncode == 2 and "incomplete output" in refused.stderr


@pytest.mark.parametrize(
    ("output_format", "suffix"),
    [("csv", ".csv.gz"), ("tsv", ".tsv.gz"), ("json", ".jsonl.gz"), ("arrow", ".arrow")],
)
def test_every_format_has_folders(
    tonnage: Tonnage, disk: Path, output_format: str, suffix: str
) -> None:
    table = sample(500)
    feather.write_feather(table, disk / "a.arrow", compression="uncompressed")
    codec = "lz4" if output_format == "arrow" else "gzip"
    tonnage.run(
        *("run", "sort", disk / "a.arrow", "--by=k,i", "--partition-by=day,country"),
        *("--output-format", output_format, "--compression", codec, "--memory=8MiB"),
        *("--output", disk / "out", "--scratch", disk / "tmp"),
        check=True,
    )
    assert all(path.name.endswith(suffix) for path in parts(disk / "out"))
    if output_format != "arrow":
        text = b"".join(pa.input_stream(part).read() for part in parts(disk / "out"))
        assert b"country" not in text and b"2026" not in text
        return
    schema = pa.schema([("country", pa.string()), ("day", pa.date32())])
    hive = ds.partitioning(schema, flavor="hive")
    got = ds.dataset(disk / "out", format="arrow", partitioning=hive).to_table()
    assert rows(got, NAMES) == rows(table, NAMES)


def test_csv_stays_as_it_is_written_in_its_folders(tonnage: Tonnage, disk: Path) -> None:
    (disk / "a.csv").write_text('c,k,v\nDE,3,007\n"a,b",1,1.50\n,1,x\nDE,1,\n')
    tonnage.run(
        *("run", "sort", disk / "a.csv", "--by=k", "--partition-by=c", "--memory=8MiB"),
        *("--output", disk / "out", "--scratch", disk / "tmp"),
        check=True,
    )
    got = defaultdict(list)
    for path in parts(disk / "out"):
        header, *lines = path.read_text().splitlines()
        assert header == "k,v"
        got[path.parent.name] += lines
    assert got == {"c=DE": ["1,", "3,007"], "c=a,b": ["1,1.50"], f"c={NULL}": ["1,x"]}


def test_a_store_has_the_same_folders(s3: Bucket, tonnage: Tonnage, disk: Path) -> None:
    table = sample(5_000)
    pq.write_table(table, disk / "a.parquet")
    common = ("--endpoint-url", s3.endpoint, "--scratch", disk / "tmp", "--memory=64MiB")
    tonnage.run(
        *("run", "sort", disk / "a.parquet", "--by=k,i", "--partition-by=country"),
        *("--output", f"s3://{BUCKET}/out", *common),
        check=True,
    )
    files = s3.content("out")
    listed = json.loads(files.pop("_tonnage.json"))["parts"]
    assert sorted(listed) == sorted(files)
    found: dict[Any, list[Any]] = defaultdict(list)
    for name in sorted(files):
        folder, _ = name.split("/")
        part = pq.read_table(io.BytesIO(files[name])).to_pylist()
        found[value_of(folder, "country", pa.string())] += part
    wanted = defaultdict(list)
    names = ["country", "k", "day", "i"]
    for row in table.sort_by([("k", "ascending"), ("i", "ascending")]).select(names).to_pylist():
        wanted[row.pop("country")].append(row)
    assert found == wanted
    back = tonnage.run(
        *("run", "sort", f"s3://{BUCKET}/out", "--by=i", "--output", disk / "back", *common)
    )
    assert back.returncode == 0, back.stderr
    whole = pa.concat_tables([pq.read_table(part) for part in parts(disk / "back")])
    assert rows(whole, NAMES) == rows(table, NAMES)


def test_many_folders_take_little_memory(tonnage: Tonnage, disk: Path) -> None:
    numbers = list(range(10_000)) * 2
    random.Random(1).shuffle(numbers)
    pq.write_table(pa.table({"p": numbers, "i": range(20_000)}), disk / "a.parquet")
    done = tonnage.run(
        *("run", "sort", disk / "a.parquet", "--by=-i", "--partition-by=p", "--memory=16MiB"),
        *("--output", disk / "out", "--scratch", disk / "tmp", "--json"),
        check=True,
    )
    record = json.loads(done.stdout)
    assert record["written_records"] == 20_000
    assert record["peak_memory_bytes"] <= (16 + 100) << 20
    assert len(os.listdir(disk / "out")) == 10_001


def test_python_reads_the_columns_of_folders(disk: Path) -> None:
    table = sample(300)
    above = disk / "year=1"  # no column of the output
    above.mkdir()
    with package.sort(table, "k,i", scratch=above, partition_by=["country"]) as done:
        got = done.reader().read_all()
    assert rows(got, NAMES) == rows(table, NAMES)
    assert sorted(got.column_names) == sorted(table.column_names)


@pytest.mark.parametrize(
    ("names", "arguments", "setting", "what"),
    [
        (["x"], {}, "partition_by", "there is no column"),
        (["a", "k"], {"columns": ["a", "k"]}, "partition_by", "all columns"),
        (["a", "a"], {}, "partition_by", "named twice"),
        (["f"], {}, "partition_by", "Float64"),
        (["b"], {}, "partition_by", "Binary"),
        (["_h"], {}, "partition_by", "passed over"),
        (["a"], {"columns": ["k"]}, "partition_by", "there is no column"),
        (["a"], {"limit": 1}, "limit", "folders"),
    ],
)
def test_what_cannot_be_folders_is_refused(
    disk: Path, names: list[str], arguments: dict[str, Any], setting: str, what: str
) -> None:
    table = pa.table({"a": ["x"], "k": [1], "f": [0.5], "_h": [1], "b": [b"x"]})
    with pytest.raises(core.UsageError, match=what) as refusal:
        package.sort(table, "k", output=disk / "out", scratch=disk, partition_by=names, **arguments)
    assert refusal.value.setting == setting
    assert not (disk / "out").exists()


@pytest.mark.parametrize("value", [NULL, "x" * 300])
def test_a_value_that_is_no_name_ends_the_job(disk: Path, value: str) -> None:
    table = pa.table({"a": ["x", value], "k": [1, 2]})
    with pytest.raises(core.UsageError, match='"a"'):
        package.sort(table, "k", output=disk / "out", scratch=disk, partition_by=["a"])
    assert not (disk / "out").exists()


def test_what_a_killed_sort_published_is_withdrawn(tonnage: Tonnage, disk: Path) -> None:
    table = sample(2_000)
    pq.write_table(table, disk / "a.parquet")
    arguments = [
        *("run", "sort", disk / "a.parquet", "--by=k", "--partition-by=country"),
        *("--output", disk / "out", "--scratch", disk / "tmp", "--memory=8MiB"),
    ]
    hidden = disk / "out" / ".tonnage-unfinished-999999"
    for folder in (hidden, disk / "out" / "country=XX", disk / "out" / "country=YY"):
        folder.mkdir(parents=True)
    published = ["country=XX/part-00000.parquet", "country=YY/part-00001.parquet"]
    (disk / "out" / published[0]).write_bytes(b"whole")
    refused = tonnage.run(*arguments)
    assert refused.returncode == 2 and "country=XX" in refused.stderr
    hidden.mkdir()
    (hidden / "parts.json").write_text(json.dumps(published))
    done = tonnage.run(*arguments)
    assert done.returncode == 0, done.stderr
    assert not any((disk / "out" / name).parent.exists() for name in published)
    assert sum(pq.read_table(part).num_rows for part in parts(disk / "out")) == 2_000


def test_folders_that_are_there_are_left_alone(disk: Path) -> None:
    (disk / "out" / "a=x").mkdir(parents=True)
    table = pa.table({"a": ["x"], "k": [1]})
    with pytest.raises(core.UsageError, match="earlier output"):
        package.sort(table, "k", output=disk / "out", scratch=disk, partition_by=["a"])
    assert os.listdir(disk / "out") == ["a=x"]


def test_values_come_back_as_their_types(disk: Path) -> None:
    values = {
        "t": (pa.timestamp("us"), datetime(2026, 1, 1, 2, 3, 4, 500)),
        "d": (pa.decimal128(9, 2), Decimal("1.50")),
        "b": (pa.bool_(), True),
        "h": (pa.time64("us"), time(1, 2, 3)),
    }
    columns = {name: pa.array([value], kind) for name, (kind, value) in values.items()}
    table = pa.table(columns | {"k": [1]})
    out = disk / "out"
    package.sort(table, "k", output=out, scratch=disk, partition_by=[*values])
    names = [unquote(part) for part in parts(out)[0].relative_to(out).parts]
    assert names[:3] == ["t=2026-01-01 02:03:04.000500", "d=1.50", "b=true"]
    schema = ",".join(f"{name}:{kind}" for name, (kind, _) in values.items())
    got = package.sort(str(out), "k", scratch=disk, schema=schema).reader().read_all()
    assert got.select([*values]).to_pylist() == table.select([*values]).to_pylist()
