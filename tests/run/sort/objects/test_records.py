"""`run sort` from object storage to object storage: whole or not there, whatever the store does."""

import json
import os
import random
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from support.cli.command import Tonnage
from support.cli.processes import started
from support.data.records import blob, checksum, cut, key_of
from support.stores.counting_proxy import counted
from support.stores.s3 import BUCKET, KEYS, Bucket, server
from tonnage.base import core
from tonnage.run.sort.local import Layout
from tonnage.run.storage.object_store import ObjectStoreOptions, find_objects

LAYOUT = Layout()
MIB = 1 << 20


def check(bucket: Bucket, records: list[bytes]) -> dict[str, Any]:
    """The output is the records, in the order of their keys, and there is nothing else."""
    content = bucket.content("out")
    manifest: dict[str, Any] = json.loads(content.pop("_tonnage.json"))
    assert sorted(content) == manifest["parts"]
    found = [record for name in manifest["parts"] for record in cut(content[name], 100)]
    assert sorted(found) == sorted(records)
    keys = [key_of(each, LAYOUT) for each in found]
    assert keys == sorted(keys)
    assert (manifest["records"], manifest["checksum"]) == (len(records), checksum(records))
    assert bucket.uploads() == []
    return manifest


def test_what_goes_in_comes_out_in_order(s3: Bucket, tonnage: Tonnage, disk: Path) -> None:
    contents = [blob(number, 100 * count) for number, count in enumerate((70_000, 1, 0, 130_000))]
    for number, content in enumerate(contents):
        s3.put(f"in/{number}/records", content)
    s3.put("in/_notes/x", b"no record")
    said = tonnage.run(*s3.sort_command(disk, "--json"), check=True)
    check(s3, cut(b"".join(contents), 100))
    record = json.loads(said.stdout)
    assert record["requests"]["requests"] > 20
    assert (record["requests"]["retries"], record["requests"]["errors"]) == (0, {})
    assert not any(secret in said.stdout for secret in KEYS.values())
    assert list((disk / "scratch").iterdir()) == []

    judged = tonnage.run("valsort", f"s3://{BUCKET}/out", "--endpoint-url", s3.endpoint, check=True)
    assert judged.stdout.splitlines()[0] == "Records: 200001"
    assert judged.stdout.splitlines()[-1] == "SUCCESS: all records are in order"

    again = tonnage.run(*s3.sort_command(disk))
    assert again.returncode == 2
    assert re.fullmatch(
        r"tonnage: --output: s3://tests/out is not empty \(it contains out/_tonnage.json\); .*\n",
        again.stderr,
    )


def test_one_object_may_be_named_and_files_may_be_beside_it(
    s3: Bucket, tonnage: Tonnage, disk: Path
) -> None:
    one, other = blob(1, 100 * 1000), blob(2, 100 * 500)
    s3.put("in/one", one)
    s3.put("in/other", other)
    (disk / "local").write_bytes(other)
    args = s3.sort_command(disk, source="in/one")
    args.insert(2, disk / "local")
    tonnage.run(*args, check=True)
    check(s3, cut(one + other, 100))


def test_a_tenth_of_requests_may_fail(keys: None, tonnage: Tonnage, disk: Path) -> None:
    with server("-errors", "0.1", "-cuts", "0.1", "-seed", "7") as running:
        bucket = Bucket(running)
        content = blob(3, 100 * 300_000)
        for number in range(3):
            bucket.put(f"in/{number}", content[number * 10_000_000 :][:10_000_000])
        said = tonnage.run(*bucket.sort_command(disk, "--json"), check=True)
        check(bucket, cut(content, 100))
    requests = json.loads(said.stdout)["requests"]
    assert requests["retries"] == sum(requests["errors"].values()) > 0
    assert set(requests["errors"]) <= {"server", "throttled", "broken"}


def test_many_small_objects_are_a_request_each(s3: Bucket, tonnage: Tonnage, disk: Path) -> None:
    records = cut(blob(4, 100 * 1000 * 200), 100)
    random.Random(4).shuffle(records)
    for number in range(1000):
        s3.put(f"in/{number:04}", b"".join(records[200 * number : 200 * (number + 1)]))
    said = tonnage.run(*s3.sort_command(disk, "--json"), check=True)
    check(s3, records)
    record = json.loads(said.stdout)
    read = {phase["name"]: phase["stages"][0] for phase in record["phases"]}["pass_one"]
    assert (read["name"], read["bytes"]) == ("read", 20_000_000)
    # Of which the sample, the lists and the output are no more than as many again.
    assert 1000 < record["requests"]["requests"] < 2000


def test_an_input_without_objects_is_refused(s3: Bucket, tonnage: Tonnage, disk: Path) -> None:
    s3.put("elsewhere/x", b"x" * 100)
    said = tonnage.run(*s3.sort_command(disk))
    assert (said.returncode, said.stdout) == (2, "")
    assert re.fullmatch(r"tonnage: input s3://tests/in: no object has this name, .*\n", said.stderr)
    assert s3.content("out") == {}


@pytest.mark.slow
def test_an_object_that_is_written_meanwhile_ends_it_with_its_name(
    keys: None, tonnage: Tonnage, disk: Path
) -> None:
    # So slow that the last object's turn comes seconds after it was listed.
    with server("-rate", "2e6") as running:
        bucket = Bucket(running)
        for number in range(3):
            bucket.put(f"in/{number}", blob(number, 2_000_000))
        command = [tonnage.path, *bucket.sort_command(disk, "--requests=1")]
        with started(command) as sorting:
            sorting.wait_until(lambda: bool(sorting.open_files(disk / "scratch")))
            bucket.put("in/2", blob(9, 1000))
            _, told = sorting.process.communicate(timeout=60)
        assert sorting.process.returncode == 1
        assert "s3://tests/in/2 was changed while it was read; run the job again" in told
        assert bucket.content("out") == {}
        assert bucket.uploads() == []


def test_who_has_no_keys_is_told(
    s3: Bucket, tonnage: Tonnage, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put("in/x", b"x" * 100)
    said = tonnage.run(*s3.sort_command(disk), env={"AWS_SECRET_ACCESS_KEY": "another"})
    assert said.returncode == 2
    assert "was denied" in said.stderr and "AWS_PROFILE" in said.stderr


REFUSALS = {
    "no url": ("s3://x", [], "s3://x: 'x' is not a bucket name"),
    "inside": (f"s3://{BUCKET}/", [], "--output: s3://tests/out is inside the input s3://tests/"),
    "no such bucket": ("s3://nowhere/in", [], "s3://nowhere: the bucket does not exist"),
    "no address": (
        f"s3://{BUCKET}/in",
        ["--endpoint-url=x"],
        "--endpoint-url x: use a URL like http://",
    ),
    "two outputs": (f"s3://{BUCKET}/in", ["--output=s3://tests/b"], "--output: "),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_sorted_is_refused_in_one_line(
    s3: Bucket, tonnage: Tonnage, disk: Path, case: str
) -> None:
    source, more, told = REFUSALS[case]
    s3.put("in/x", b"x" * 100)
    args = s3.sort_command(disk, *more)
    args[2] = source
    said = tonnage.run(*args)
    assert (said.returncode, said.stdout) == (2, "")
    assert re.fullmatch(rf"tonnage: {re.escape(told)}[^\n]*\n", said.stderr), said.stderr
    assert set(s3.content("out")) == set()


def test_an_object_given_twice_is_refused(s3: Bucket, tonnage: Tonnage, disk: Path) -> None:
    s3.put("in/x", b"x" * 100)
    args = s3.sort_command(disk)
    args.insert(2, f"s3://{BUCKET}/in/x")
    said = tonnage.run(*args)
    assert said.returncode == 2 and "is specified twice" in said.stderr


def test_an_output_that_is_no_longer_whole_is_refused(
    s3: Bucket, tonnage: Tonnage, disk: Path
) -> None:
    manifest = {"format": "tonnage.output/1", "records": 2, "bytes": 200}
    parts = {"parts": ["part-00000", "part-00001"]}
    s3.put("in/_tonnage.json", json.dumps(manifest | parts).encode())
    s3.put("in/part-00000", b"x" * 100)
    said = tonnage.run(*s3.sort_command(disk))
    assert said.returncode == 2
    assert "s3://tests/in/part-00001 is missing" in said.stderr


@pytest.mark.parametrize(
    "sent", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_sort_leaves_no_upload_and_no_object(
    keys: None, tonnage: Tonnage, disk: Path, sent: signal.Signals
) -> None:
    # So slow that parts are under way for seconds.
    with server("-rate", "8e6") as running:
        bucket = Bucket(running)
        for number in range(8):
            bucket.put(f"in/{number}", blob(number, 4_000_000))
        with started([tonnage.path, *bucket.sort_command(disk)]) as sorting:
            sorting.wait_until(lambda: len(bucket.uploads()) > 1)
            code, _, _ = sorting.end(sent)
        assert code == 128 + sent
        assert bucket.uploads() == []
        assert bucket.content("out") == {}
        assert list((disk / "scratch").iterdir()) == []


def test_what_is_found_is_what_a_fleet_divides(s3: Bucket) -> None:
    for name in ("b", "a", ".hidden", "_x/y"):
        s3.put(f"in/{name}", b"x" * 300)
    found = find_objects(
        [f"s3://{BUCKET}/in", f"s3://{BUCKET}/in/b"], ObjectStoreOptions(endpoint=s3.endpoint)
    )
    assert [(each.bucket, each.key, each.bytes) for each in found] == [
        (BUCKET, "in/a", 300),
        (BUCKET, "in/b", 300),
        (BUCKET, "in/b", 300),
    ]
    assert found[1].etag == found[2].etag is not None


@pytest.mark.slow
def test_few_requests_move_what_memory_can_hold(s3: Bucket, tonnage: Tonnage, disk: Path) -> None:
    contents = [blob(number, 100 * 400_000) for number in range(2)]
    for number, content in enumerate(contents):
        s3.put(f"in/{number}", content)
    memory, requests = 1 << 30, 2
    shape = {
        "bytes": sum(map(len, contents)),
        "record_bytes": 100,
        "memory_bytes": memory,
        "workers": len(os.sched_getaffinity(0)),
        "devices": (requests, 1, requests),
        "downloads": True,
        "uploads": True,
    }
    its = core.plan(shape)
    assert its["extent_bytes"] > 4 * MIB and its["output_block_bytes"] > 16 * MIB
    with counted(s3.endpoint) as seen:
        command = s3.sort_command(disk, f"--requests={requests}", f"--memory={memory >> 20}MiB")
        command[command.index(s3.endpoint)] = seen.endpoint
        tonnage.run(*command, check=True)
    manifest = check(s3, cut(b"".join(contents), 100))
    ranges = [length for length in seen.gets if length > MIB]  # The others are the sample.
    assert sum(ranges) == shape["bytes"]
    assert len(ranges) == sum(-(-len(each) // its["extent_bytes"]) for each in contents)
    parts = [length for length in seen.puts if length > MIB]
    assert (len(parts), sum(parts)) == (len(manifest["parts"]), shape["bytes"])
    assert seen.posts == 2 * len(parts)  # Each upload is begun, and completed at the end.
