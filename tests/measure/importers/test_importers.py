"""Importing other tools' results: known answers, refusals, and broken files.

The samples in data/importers are real outputs; elbencho's are made by hand after its source.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from support.data.fuzz_importers import SAMPLES, fuzz, obeys, samples
from support.stores.disk import ROOT
from tonnage.base.records import Latency, Metric
from tonnage.measure.importers import fio_bins
from tonnage.measure.importers.detection import LARGEST_BYTES, read
from tonnage.measure.importers.metric import UnreadableFile
from tonnage.measure.trial.cache_detection import FASTEST_DEVICE, FITS_IN_MEMORY, cache_reason

MIB = 1 << 20

# File, its number of metrics, one of them, and its values; taken from the files by hand.
ANSWERS: list[tuple[str, int, int, dict[str, Any]]] = [
    (
        "fio/randread-4k-qd32-iouring.jsonplus.json",
        1,
        0,
        {
            "tool": "fio",
            "version": "3.33",
            "operation": "randread",
            "block_bytes": 4096,
            "direct": True,
            "concurrency": 32,
            "bandwidth": 295392959,
            "operations": 72112.091939,
            "mean": 438696.341457e-9,
            "p50": 378880e-9,
            "p90": 452608e-9,
            "p99": 2670592e-9,
            "p999": 6586368e-9,
            "max": 15643132e-9,
            "cached": False,
        },
    ),
    ("fio/clientserver.json", 1, 0, {"operation": "randread", "p99": 134144e-9, "direct": True}),
    ("fio/clientserver.json", 1, 0, {"bandwidth": 61483676, "block_bytes": 4096}),
    ("fio/steadystate.json", 1, 0, {"operation": "randread", "concurrency": 1}),
    ("fio/twojobs-nogroup.json", 2, 1, {"operation": "read", "block_bytes": MIB}),
    ("fio/randwrite-4k-fsync1.jsonplus.json", 2, 0, {"operation": "randwrite", "cached": False}),
    ("fio/randwrite-4k-fsync1.jsonplus.json", 2, 1, {"operation": "fsync", "p50": 1843200e-9}),
    (
        "fio/missing-dir-silently-created.json",
        1,
        0,
        {"operation": "read", "block_bytes": 4096, "direct": False, "bandwidth": 349525333},
    ),
    (
        "fio/randread-4k.terse3",
        1,
        0,
        {
            "version": "3.33",
            "operation": "read",
            "bandwidth": 61379 * 1024,
            "operations": 15344,
            "mean": 64.678608e-6,
            "p50": 56e-6,
            "p90": 70e-6,
            "p99": 108e-6,
            "p999": 3194e-6,
            "max": 12482e-6,
            "direct": None,
            "block_bytes": None,
        },
    ),
    ("fio/randread-4k.terse5", 1, 0, {"bandwidth": 64131 * 1024, "p999": 2736e-6}),
    ("fio/logs_clat.1.log", 1, 0, {"operation": "read", "p50": None, "bandwidth": None}),
    ("fio/logs_clat_hist.1.log", 1, 0, {"p50": 234496e-9, "p99": 378880e-9, "mean": None}),
    (
        "ior/posix-shared-direct-i3.json",
        6,
        0,
        {
            "tool": "ior",
            "version": "4.1.0+dev",
            "operation": "write",
            "block_bytes": 4194304,
            "direct": True,
            "concurrency": 2,
            "bandwidth": 1728.7912 * MIB,
            "operations": 432.5599,
            "mean": 0.0038,
            "cached": False,
        },
    ),
    ("ior/posix-shared-direct-i3.json", 6, 5, {"bandwidth": 1137.5131 * MIB, "operation": "read"}),
    ("ior/mpiio-shared-i2.txt", 4, 1, {"bandwidth": 28549 * MIB, "cached": True, "direct": None}),
    ("ior/mpiio-shared-i2.txt", 4, 0, {"operations": 6459, "block_bytes": 262144, "cached": False}),
    ("ior/rankdetails.run.txt", 4, 0, {"direct": False, "cached": True, "mean": 0.000217}),
    ("ior/posix-csv.csv", 4, 1, {"bandwidth": 33552.335 * MIB, "cached": True, "concurrency": 2}),
    ("ior/rankdetails.csv", 4, 0, {"operation": "write", "bandwidth": 9196.77 * MIB}),
    (
        "mdtest/basic-i3.txt",
        6,
        0,
        {"tool": "mdtest", "operation": "create", "operations": 43599.024, "concurrency": 2},
    ),
    ("mdtest/rank-details.txt", 10, 2, {"operation": "rename", "operations": 60996.259}),
    ("mdtest/tree-b3-z2.txt", 10, 9, {"operation": "remove", "operations": 6016.808}),
    ("mdtest/rank-details.csv", 10, 0, {"operations": 5571.7156957}),
    (
        "bonnie/bonnie.csv",
        24,
        1,
        {
            "tool": "bonnie++",
            "version": "2.00a",
            "operation": "write",
            "bandwidth": 852140 * 1024,
            "max": 4096e-6,
            "concurrency": 1,
            "p50": None,
        },
    ),
    ("bonnie/bonnie.csv", 24, 4, {"operation": "read", "bandwidth": None, "max": 96e-6}),
    ("bonnie/bonnie.csv", 24, 17, {"operation": "seek", "operations": 15458, "concurrency": 5}),
    ("bonnie/bonnie.txt", 12, 6, {"operation": "create", "operations": 916, "max": 19939e-6}),
    (
        "iozone/auto-a.txt",
        1287,
        0,
        {
            "tool": "iozone",
            "version": "3.489",
            "operation": "write",
            "block_bytes": 4096,
            "bandwidth": 546928 * 1024,
            "cached": True,
            "direct": False,
        },
    ),
    ("iozone/auto-a.txt", 1287, 12, {"operation": "reread", "bandwidth": 4274062 * 1024}),
    ("iozone/sync-o-direct.txt", 4, 2, {"operation": "randread", "operations": 16159}),
    ("iozone/sync-o-direct.txt", 4, 3, {"operation": "randwrite", "direct": True, "cached": False}),
    (
        "hdparm/tT.txt",
        2,
        0,
        {"tool": "hdparm", "operation": "read", "bandwidth": 21965.93 * MIB, "cached": True},
    ),
    ("hdparm/tT.txt", 2, 1, {"bandwidth": 265.53 * MIB, "cached": False, "direct": False}),
    ("hdparm/t-direct-x3.txt", 3, 2, {"bandwidth": 648.30 * MIB, "direct": True}),
    (
        "iperf3/tcp-P4-omit1.json",
        1,
        0,
        {
            "tool": "iperf3",
            "version": "3.12",
            "operation": "send",
            "concurrency": 4,
            "block_bytes": 131072,
            "bandwidth": 10371039669.053646 / 8,
        },
    ),
    ("iperf3/tcp-reverse.json", 1, 0, {"operation": "receive", "direct": None}),
    ("iperf3/udp-1G.json", 1, 0, {"bandwidth": 963031667.19217563 / 8}),
    ("sysstat/sadf-disk-net.json", 14, 3, {"tool": "sysstat", "operation": "device read"}),
    ("sysstat/sar-all.txt", 14, 3, {"operation": "device read", "bandwidth": 1076915456 / 7}),
    ("sysstat/sadf-d.csv", 6, 3, {"operation": "device read", "bandwidth": 1076915456 / 7}),
    ("sysstat/iostat.json", 6, 4, {"operation": "device write", "direct": None}),
    (
        "warp/get-json.json",
        1,
        0,
        {
            "tool": "warp",
            "operation": "get",
            "concurrency": 4,
            "block_bytes": MIB,
            "bandwidth": 5749280356.948473 / 5,
            "mean": 3.836015e-3,
            "p50": 3.1749e-3,
            "p90": 6.744391e-3,
            "p99": 12.61305e-3,
            "p999": None,
            "max": 56.784452e-3,
        },
    ),
    ("warp/get-full.json", 1, 0, {"operation": "get", "bandwidth": 3927245497 / 3.994}),
    ("warp/mixed.json.zst", 4, 0, {"operation": "remove", "bandwidth": None, "concurrency": 4}),
    ("warp/get.txt", 1, 0, {"bandwidth": 1247.87 * MIB, "p99": 9.6e-3, "operations": 1247.87}),
    ("warp/getfull.csv.head40.tsv", 1, 0, {"operation": "put", "concurrency": 2}),
    (
        "elbencho/made-by-hand.json",
        2,
        0,
        {
            "tool": "elbencho",
            "version": "3.0-35",
            "operation": "randread",
            "block_bytes": 131072,
            "direct": True,
            "concurrency": 64,
            "bandwidth": 3132620800,
            "operations": 23900,
            "mean": 2600e-6,
            "p50": None,
        },
    ),
    ("elbencho/made-by-hand.json", 2, 1, {"operation": "remove", "operations": 14545}),
    ("elbencho/made-by-hand.csv", 4, 0, {"operation": "write", "bandwidth": 930 * MIB}),
    ("elbencho/made-by-hand.csv", 4, 2, {"operation": "randread", "operations": 7200}),
]

# What of the samples is refused, and a part of the reason.
REFUSALS = {
    "bonnie/bonnie.html": "bonnie++",
    "bonnie/bonnie_csv2txt.txt": "bonnie++'s CSV",
    "fio/randread-4k.normal.txt": "--output-format=json+",
    "hdparm/tT-vda.txt.err": "hdparm",
    "iperf3/error-refused.json": "unable to connect to server: Connection refused) at $.error",
    "iperf3/tcp-text.txt": "-J",
    "sysstat/mpstat.json": "disks or network devices",
    "sysstat/pidstat.txt": "sysstat",
}


def named(reading: Metric) -> dict[str, Any]:
    """A reading's fields by short names."""
    return {
        **structs.asdict(reading),
        **structs.asdict(reading.source),
        **structs.asdict(reading.latency_seconds),
        "bandwidth": reading.bandwidth_bytes_per_second,
        "operations": reading.operations_per_second,
        "cached": reading.cached is not None,
    }


@pytest.mark.parametrize(("name", "count", "at", "answer"), ANSWERS)
def test_samples_have_these_answers(name: str, count: int, at: int, answer: dict[str, Any]) -> None:
    found = read(SAMPLES / name)
    assert len(found) == count
    held = named(found[at])
    for key, value in answer.items():
        # IOR prints few digits in its text.
        expected = pytest.approx(value, rel=1e-5) if isinstance(value, float) else value
        assert held[key] == expected, key


@pytest.mark.parametrize("path", samples(), ids=lambda path: str(path.relative_to(SAMPLES)))
def test_every_sample_is_read_or_refused(path: Path) -> None:
    name = str(path.relative_to(SAMPLES))
    if name in REFUSALS:
        with pytest.raises(UnreadableFile) as why:
            read(path)
        assert REFUSALS[name] in str(why.value) and str(path) in str(why.value)
        return
    for reading in read(path):
        obeys(reading)
        assert reading.source.tool.rstrip("+") == path.parent.name


@pytest.mark.parametrize(
    "path", sorted((SAMPLES / "fio").glob("*.json")), ids=lambda path: path.name
)
def test_percentiles_from_bins_are_fios_own(path: Path) -> None:
    listed = 0
    for held in _objects(json.loads(path.read_text())):
        if "bins" in held:
            bins = sorted((int(value), count) for value, count in held["bins"].items())
            for percent, value in held["percentile"].items():
                assert fio_bins.percentile(bins, float(percent), held["N"]) == value
                listed += 1
    assert listed or "jsonplus" not in path.name


def test_percentiles_that_fio_does_not_list_come_from_bins(tmp_path: Path) -> None:
    sample = SAMPLES / "fio" / "seqread-4m.jsonplus.json"
    listed = read(sample)[0]
    document = json.loads(sample.read_text())
    document["jobs"][0]["read"]["clat_ns"]["percentile"] = {"95.000000": 1}
    unlisted = _read(tmp_path, json.dumps(document))[0]
    assert unlisted.latency_seconds == listed.latency_seconds
    assert unlisted.bins == listed.bins and listed.bins is not None


def test_bins_stand_for_the_middle_of_their_range() -> None:
    # From fio's stat.h: groups of 64, each twice as coarse as the one before.
    assert [fio_bins.value_of(at) for at in (0, 127, 128, 129, 191, 192)] == [
        0,
        127,
        129,
        131,
        255,
        258,
    ]


def test_fio_2_has_kibibytes_and_microseconds(tmp_path: Path) -> None:
    latency = {"min": 1, "max": 900, "mean": 50.5, "percentile": {"50.000000": 40, "0.00": 0}}
    side = {"io_bytes": 1024, "bw": 512, "iops": 128.0, "runtime": 2000, "clat": latency}
    idle = {"io_bytes": 0, "bw": 0, "iops": 0, "runtime": 0, "clat": {"min": 0}}
    document = {
        "fio version": "fio-2.0.10",
        "jobs": [{"jobname": "a", "read": side, "write": idle}],
    }
    (reading,) = _read(tmp_path, json.dumps(document))
    assert reading.bandwidth_bytes_per_second == 512 * 1024
    assert reading.latency_seconds.mean == pytest.approx(50.5e-6)
    assert (reading.latency_seconds.p50, reading.latency_seconds.p90) == (40e-6, None)
    assert (reading.direct, reading.concurrency, reading.block_bytes) == (None, None, None)
    assert reading.details["bytes"] == 1024 * 1024


def test_bins_of_fio_2_14_are_indexes(tmp_path: Path) -> None:
    held = {"FIO_IO_U_PLAT_NR": 1216, "FIO_IO_U_PLAT_BITS": 6, "0": 0, "5": 3, "192": 1}
    document = _fio({"rw": "read"}, read={"clat": {"mean": 1, "max": 260, "bins": held}})
    (reading,) = _read(tmp_path, json.dumps(document))
    assert reading.bins == [(5e-6, 3), (258e-6, 1)]
    assert reading.latency_seconds.p50 == 5e-6


def test_a_mixed_job_gives_a_metric_for_each_direction(tmp_path: Path) -> None:
    options = {"rw": "randrw:4", "bs": "4k,8k", "iodepth": "8", "ioengine": "libaio"}
    found = _read(tmp_path, json.dumps(_fio(options, read={}, write={})))
    assert [(reading.operation, reading.block_bytes) for reading in found] == [
        ("randread", 4096),
        ("randwrite", 8192),
    ]
    assert [reading.concurrency for reading in found] == [8, 8]


@pytest.mark.parametrize(
    ("options", "concurrency", "block", "direct"),
    [
        ({}, 1, 4096, False),
        ({"bs": "1m", "direct": ""}, 1, MIB, True),
        ({"bs": "1m", "kb_base": "1000"}, 1, 10**6, False),
        ({"bs": "4ki"}, 1, 4000, False),
        ({"bsrange": "4k-8k", "buffered": "0"}, 1, None, True),
        ({"iodepth": "16", "ioengine": "psync"}, 1, 4096, False),
        ({"iodepth": "16", "ioengine": "io_uring", "numjobs": "4"}, 16, 4096, False),
        (
            {"iodepth": "16", "ioengine": "io_uring", "numjobs": "4", "group_reporting": ""},
            64,
            4096,
            False,
        ),
    ],
)
def test_fio_options_describe_the_job(
    tmp_path: Path, options: dict[str, str], concurrency: int, block: int, direct: bool
) -> None:
    (reading,) = _read(tmp_path, json.dumps(_fio({"rw": "read", **options}, read={})))
    assert (reading.concurrency, reading.block_bytes, reading.direct) == (
        concurrency,
        block,
        direct,
    )


def test_text_around_json_is_skipped(tmp_path: Path) -> None:
    document = (SAMPLES / "fio" / "steadystate.json").read_text()
    around = f"fio: this is a warning\nnote: [x]\n{document}\nbye\n"
    assert _read(tmp_path, around) == read(SAMPLES / "fio" / "steadystate.json")


def test_only_the_last_state_of_a_run_counts(tmp_path: Path) -> None:
    states = []
    for elapsed in (1, 2, 3):
        document = _fio({"rw": "read"}, read={"iops": elapsed})
        document["jobs"][0]["elapsed"] = elapsed
        states.append(json.dumps(document))
    found = _read(tmp_path, "\n".join(states))
    assert [reading.operations_per_second for reading in found] == [3]
    # Three identical documents are three runs.
    assert len(_read(tmp_path, "\n".join([states[0]] * 3))) == 3


def test_logs_of_single_operations_have_percentiles(tmp_path: Path) -> None:
    lines = "".join(f"{at * 10}, {at * 1000}, 1, 4096, 0\n" for at in range(1, 101))
    (reading,) = _read(tmp_path, lines, "x_clat.2.log")
    latency = reading.latency_seconds
    assert (latency.p50, latency.p99, latency.max) == pytest.approx((50e-6, 99e-6, 100e-6))
    assert (reading.operation, reading.block_bytes) == ("write", 4096)
    assert reading.operations_per_second == 100
    with pytest.raises(UnreadableFile, match=r"_bw\.N\.log"):
        _read(tmp_path, lines, "unnamed.txt")


def test_logs_of_an_unknown_fio_version_have_no_latencies(tmp_path: Path) -> None:
    # fio 2 wrote microseconds, on request with an offset; fio 3 writes nanoseconds.
    for more in ("", ", 8192", ", 4096, 8192"):
        lines = "".join(f"{at * 10}, {at}, 1, 4096{more}\n" for at in range(1, 101))
        (reading,) = _read(tmp_path, lines, "x_clat.2.log")
        assert reading.latency_seconds == Latency() and reading.operations_per_second == 100
        assert reading.details["latency_unit"].startswith("unknown: nanoseconds for fio 3")
    (reading,) = _read(tmp_path, "200, 500, 0, 0\n400, 700, 0, 0\n", "x_lat.1.log")
    assert reading.latency_seconds == Latency()
    (reading,) = _read(tmp_path, "200, 500, 0, 0, 0x4001\n", "x_lat.1.log")
    assert reading.latency_seconds.mean == 500e-9


def test_warps_percentiles_of_parts_are_not_combined(tmp_path: Path) -> None:
    document = json.loads((SAMPLES / "warp" / "get-json.json").read_text())
    (clients,) = (of["requests_by_client"] for of in document["by_op_type"].values())
    ((alone,),) = clients.values()
    # Three times as many requests that took twice as long.
    other = json.loads(json.dumps(alone))
    times, first = other["single_sized_requests"], other["single_sized_requests"]["first_byte"]
    times["requests"] *= 3
    times["dur_avg_millis"] *= 2
    first["average_millis"] *= 2
    clients["another"] = [other]
    (reading,) = _read(tmp_path, json.dumps(document), "warp.json")
    latency = reading.latency_seconds
    assert (latency.p50, latency.p90, latency.p99) == (None, None, None)
    assert latency.mean == pytest.approx(3.836015e-3 * 7 / 4)
    assert latency.max == pytest.approx(56.784452e-3)
    assert reading.details["first_byte_seconds"].keys() == {"mean", "max"}
    # A single entry that sums several has no percentiles either.
    del clients["another"]
    alone["single_sized_requests"]["merged_entries"] = 2
    (reading,) = _read(tmp_path, json.dumps(document), "warp.json")
    assert reading.latency_seconds.p50 is None and reading.latency_seconds.mean


def test_logs_may_contain_the_maximum_of_each_window(tmp_path: Path) -> None:
    lines = "100, 500, 900, 0, 0, 0\n200, 700, 1100, 0, 0, 0\n"
    (reading,) = _read(tmp_path, lines, "x_lat.log")
    assert reading.latency_seconds.mean == pytest.approx(600e-9)
    assert reading.latency_seconds.max == 1100e-9


def test_terse_2_has_no_version_and_may_have_no_percentiles(tmp_path: Path) -> None:
    # The example of fio's own documentation.
    line = (
        "2;card0;0;0;7139336;121836;60004;1;10109;27.932460;116.933948;220;126861;3495.446807;"
        "1085.368601;226;126864;3523.635629;1089.012448;24063;99944;50.275485%;59818.274627;"
        "5540.657370;7155060;122104;60004;1;8338;29.086342;117.839068;388;128077;5032.488518;"
        "1234.785715;391;128085;5061.839412;1236.909129;23436;100928;50.287926%;59964.832030;"
        "5644.844189;14.595833%;19.394167%;123706;0;7313;0.1%;0.1%;0.1%;0.1%;0.1%;0.1%;100.0%;"
        "0.00%;0.00%;0.00%;0.00%;0.00%;0.00%;0.01%;0.02%;0.05%;0.16%;6.04%;40.40%;52.68%;0.64%;"
        "0.01%;0.00%;0.01%;0.00%;0.00%;0.00%;0.00%;0.00%"
    )
    with pytest.raises(
        UnreadableFile, match="a complete line of fio's terse output, version 2 at line 1"
    ):
        _read(tmp_path, line)  # It has no IOPS, which were added before version 2 got its number.
    fields = line.split(";")
    fields.insert(6, "30459")
    fields.insert(27, "30526")
    found = _read(tmp_path, ";".join(fields) + "\n    A description of this job goes here.\n")
    assert [reading.operation for reading in found] == ["read", "write"]
    assert found[1].bandwidth_bytes_per_second == 122104 * 1024
    assert found[1].latency_seconds.mean == pytest.approx(5032.488518e-6)


def test_ior_of_version_3_0(tmp_path: Path) -> None:
    text = """\
IOR-3.0.1: MPI Coordinated Test of Parallel I/O

Began: Thu Jan  1 00:00:00 2015
Command line used: ior -a POSIX -w -r -z -B -o f
Machine: Linux node

Summary:
\tapi                = POSIX
\tordering in a file = random offsets
\tclients            = 64 (16 per node)
\taggregate filesize = 2 GiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     100.50     1024.00    256.00     0.000351   0.001044   0.000037   0.001436   0
remove    -          -          -          -          -          -          0.000236   0

Max Write: 100.50 MiB/sec (105.38 MB/sec)

Finished: Thu Jan  1 00:00:02 2015
"""
    (reading,) = _read(tmp_path, text)
    assert reading.bandwidth_bytes_per_second == 100.5 * MIB
    assert (reading.operation, reading.direct, reading.concurrency) == ("randwrite", True, 64)
    assert (reading.operations_per_second, reading.latency_seconds.mean) == (None, None)


@pytest.mark.parametrize(
    ("line", "version", "bandwidth", "seeks"),
    [
        # 1.03 and 1.96, as their documentation has them.
        (
            "rock,2G,45000,99,60000,20,30000,10,40000,90,70000,8,500.1,1,"
            "16,3000,20,+++++,+++,4000,10,3100,21,+++++,+++,4100,11",
            None,
            60000,
            500.1,
        ),
        (
            "1.96,1.96,rock,1,1300000000,4G,,500,99,60000,20,30000,10,900,90,70000,8,500.1,12,"
            "16,,,,,3000,20,+++++,+++,4000,10,3100,21,+++++,+++,4100,11,"
            "16000us,120ms,1s,9000us,70ms,90ms,160us,90us,100us,80us,20us,90us",
            "1.96",
            60000,
            500.1,
        ),
    ],
)
def test_bonnie_of_older_versions(
    tmp_path: Path, line: str, version: str | None, bandwidth: int, seeks: float
) -> None:
    found = _read(tmp_path, line)
    by_test = {reading.details["test"]: reading for reading in found}
    assert len(found) == 12
    assert by_test["put_block"].bandwidth_bytes_per_second == bandwidth * 1024
    assert by_test["seeks"].operations_per_second == seeks
    assert by_test["seq_stat"].operations_per_second is None
    assert by_test["seq_stat"].details["too_fast_to_measure"] is True
    assert found[0].source.version == version


def test_iozones_excel_output_equals_its_table(tmp_path: Path) -> None:
    whole = (SAMPLES / "iozone" / "auto-R.txt").read_text()
    alone = whole[whole.index('"Writer report"') :]
    assert _speeds(_read(tmp_path, alone)) == _speeds(read(SAMPLES / "iozone" / "auto-R.txt"))
    with pytest.raises(UnreadableFile):
        _read(tmp_path, alone[:-30])


def test_iozones_throughput_mode(tmp_path: Path) -> None:
    text = """\
\tIozone: Performance Test of File I/O
\t        Version $Revision: 3.430 $
\tCommand line used: iozone -t 12 -i 0 -s 4g -r 128k -e
\tOutput is in kBytes/sec
\tEach process writes a 4194304 kByte file in 128 kByte records

\tChildren see throughput for 12 initial writers \t= 4732581.09 kB/sec
\tParent sees throughput for 12 initial writers \t= 4646810.21 kB/sec
\tMin throughput per process \t\t\t=  387764.34 kB/sec
\tChildren see throughput for 12 random readers \t= 1000.00 kB/sec

iozone test complete.
"""
    writes, reads = _read(tmp_path, text)
    assert writes.bandwidth_bytes_per_second == 4732581.09 * 1024
    assert (writes.operation, writes.concurrency, writes.block_bytes) == ("write", 12, 128 << 10)
    assert (reads.operation, reads.cached) == ("randread", None)


def test_failures_of_hdparm_are_kept(tmp_path: Path) -> None:
    text = """
/dev/md0:
 HDIO_DRIVE_CMD(identify) failed: Inappropriate ioctl for device
 Timing cached reads:   25000 MB in  2.00 seconds = 12500.00 MB/sec
 Timing buffered disk reads: read() failed: Input/output error
"""
    (reading,) = _read(tmp_path, text)
    assert len(reading.details["warnings"]) == 2
    with pytest.raises(UnreadableFile, match="line 5"):
        _read(tmp_path, text.replace("read() failed: Input/output error", " 80 MB in  3.0"))


def test_iperf3_bidirectional_and_as_events(tmp_path: Path) -> None:
    document = json.loads((SAMPLES / "iperf3" / "tcp-1.json").read_text())
    events = [{"event": "start", "data": document["start"]}]
    events += [{"event": "interval", "data": interval} for interval in document["intervals"]]
    events += [{"event": "end", "data": document["end"]}]
    stream = "\n".join(map(json.dumps, events))
    assert _read(tmp_path, stream) == read(SAMPLES / "iperf3" / "tcp-1.json")
    for name in ("sum_sent", "sum_received"):
        document["end"][f"{name}_bidir_reverse"] = document["end"][name]
    found = _read(tmp_path, json.dumps(document))
    assert [reading.operation for reading in found] == ["send", "receive"]


def test_series_of_sysstat_are_its_samples() -> None:
    held = {
        (reading.details["device"], reading.operation): reading
        for reading in read(SAMPLES / "sysstat" / "sadf-disk-net.json")
    }
    series = held["vda", "device read"].series
    assert series is not None
    assert series[:2] == [(1.0, 104880 * 1024), (2.0, 168320 * 1024)]
    sent = held["eth0", "interface send"].series
    assert sent is not None and sent[0] == (1.0, 7.36 * 1024)


@pytest.mark.parametrize(
    ("direct", "speed", "sizes", "is_cached"),
    [
        (True, FASTEST_DEVICE * 2, {"reread_bytes": 1}, False),
        (False, FASTEST_DEVICE, {}, False),
        (None, FASTEST_DEVICE * 1.01, {}, True),
        (False, 1e6, {"reread_bytes": FITS_IN_MEMORY}, True),
        (False, 1e6, {"reread_bytes": FITS_IN_MEMORY + 1}, False),
        (False, 1e6, {"unflushed_bytes": FITS_IN_MEMORY}, True),
        (False, None, {"unflushed_bytes": FITS_IN_MEMORY + 1}, False),
    ],
)
def test_rules_for_cached_results(
    direct: bool | None, speed: float | None, sizes: dict[str, float], is_cached: bool
) -> None:
    assert (cache_reason(direct, speed, **sizes) is not None) is is_cached


def test_a_file_read_repeatedly_is_cached(tmp_path: Path) -> None:
    def reason(**options: str) -> str | None:
        document = _fio({"rw": "read", "size": "100m", **options}, read={"io_bytes": 200 << 20})
        return _read(tmp_path, json.dumps(document))[0].cached

    assert "page cache" in (reason() or "")
    assert reason(direct="1") is None
    assert reason(size="10g") is None
    assert reason(ioengine="null") is None


FOREIGN = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0",
    "csv": b"date,price\n2026-01-01,3\n2026-01-02,4\n",
    "numbers": b"1,2,3,0,5\n",
    "prose": b"It was the best of times, it was the worst of times.\n",
    "empty": b"",
    "blank": b" \n\n",
    "json": b'{"a": 1}',
    "list": b"[1, 2]",
    "deep": b'{"jobs":' * 100_000,
    "nul": b"\0" * 1000,
    "latin": b"caf\xe9 \xff\n",
    "zstd": b"\x28\xb5\x2f\xfd not really",
    "fio of another type": b'{"fio version": "fio-3.33", "jobs": 5}',
    "no io": b'{"fio version": "fio-3.33", "jobs": []}',
    "long number": b'{"fio version": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_unknown_files_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableFile) as why:
        _read(tmp_path, FOREIGN[name], f"{name}\n\x1b[31m")
    message = str(why.value)
    assert message.isprintable() and "expected" in message and str(tmp_path) in message


def test_directories_and_missing_files_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UnreadableFile, match="a readable file"):
            read(path)


def test_too_large_files_are_refused(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    with pytest.raises(UnreadableFile, match="at most 256 MiB"):
        read(large)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda job: job.pop("jobname"), "$.jobs[0]"),
        (lambda job: job["read"].pop("iops"), "$.jobs[0].read"),
        (lambda job: job["read"].update(iops="fast"), "$.jobs[0].read.iops"),
        (lambda job: job["read"].update(iops=-1), "$.jobs[0].read.iops"),
        (lambda job: job["read"].update(iops=float("nan")), "$.jobs[0].read.iops"),
        (lambda job: job.update(read=[]), "$.jobs[0].read"),
        (lambda job: job["read"]["clat_ns"].update(bins={"x": 1}), "$.jobs[0].read.clat_ns.bins.x"),
    ],
)
def test_an_error_names_the_place(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], where: str
) -> None:
    document = json.loads((SAMPLES / "fio" / "seqread-4m.jsonplus.json").read_text())
    change(document["jobs"][0])
    with pytest.raises(UnreadableFile) as why:
        _read(tmp_path, json.dumps(document))
    assert str(why.value).endswith(f"at {where}")


@pytest.mark.parametrize(
    "name",
    [
        "fio/randread-4k-qd1.jsonplus.json",
        "fio/randread-4k.terse3",
        "fio/randread-4k.terse5",
        "ior/mpiio-shared-i2.txt",
        "ior/posix-shared-direct-i3.json",
        "mdtest/basic-i3.txt",
        "iozone/auto-R.txt",
        "iperf3/tcp-1.json",
        "sysstat/iostat.json",
        "warp/get-json.json",
        "warp/mixed.json.zst",
    ],
)
def test_truncated_files_are_refused(tmp_path: Path, name: str) -> None:
    content = (SAMPLES / name).read_bytes().rstrip()
    for part in range(1, 20):
        with pytest.raises(UnreadableFile):
            _read(tmp_path, content[: len(content) * part // 20])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_files_written_on_windows_are_read(tmp_path: Path, encoding: str) -> None:
    sample = SAMPLES / "mdtest" / "basic-i3.txt"
    content = sample.read_text().replace("\n", "\r\n").encode(encoding)
    assert _read(tmp_path, content) == read(sample)


def test_broken_files_are_read_or_refused() -> None:
    assert fuzz(20260101, samples(), count=400).total() == 400


def test_the_fuzzer_is_a_command() -> None:
    script = ROOT / "tests" / "support" / "data" / "fuzz_importers.py"
    done = subprocess.run(
        [sys.executable, script, "--seconds", "0.2", "--importer", "hdparm"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("hdparm: ")


def _read(directory: Path, content: str | bytes, name: str = "result") -> list[Metric]:
    path = directory / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(path)


def _fio(options: dict[str, str], **sides: dict[str, Any]) -> dict[str, Any]:
    """A document of fio 3 with one job."""
    side = {"io_bytes": 1 << 40, "io_kbytes": 1 << 30, "bw_bytes": 1, "iops": 1, "runtime": 1}
    directions = {name: {**side, **more} for name, more in sides.items()}
    job = {"jobname": "job", "job options": options, **directions}
    return {"fio version": "fio-3.33", "jobs": [job]}


def _objects(value: Any) -> list[dict[str, Any]]:
    """All objects in a JSON value."""
    if isinstance(value, list):
        return [held for inner in value for held in _objects(inner)]
    if isinstance(value, dict):
        return [value, *(held for inner in value.values() for held in _objects(inner))]
    return []


def _speeds(found: list[Metric]) -> set[tuple[str, int | None, float | None, Any]]:
    return {
        (
            reading.operation,
            reading.block_bytes,
            reading.bandwidth_bytes_per_second,
            reading.details["file_bytes"],
        )
        for reading in found
    }
