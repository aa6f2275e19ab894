"""Command lines that cannot be used: exit code 2, one line, nothing changed."""

import re
from pathlib import Path

import pytest

from cli.conftest import Call

# Command lines that are refused, each with a pattern of its one line.
# In a directory with a file `in` of 1000 records, one `cut` short, an empty directory `dir`, and a
# directory `filled` that holds another, `below`, one `full` that holds `records`, a `link` to `in`.
SORT = ("run", "sort", "in", "--output", "out", "--scratch", "scratch")
REFUSED: list[tuple[tuple[str, ...], str]] = [
    ((), r"missing command; use one of measure, .*completion"),
    (("fleet", "down"), r"tonnage fleet is now tonnage cluster"),
    ((*SORT, "--fleet", "auto"), r"--fleet is now --cluster"),
    ((*SORT, "--out", "job"), r"--out is now --job-dir"),
    (("measure", "disk", "--out", "out"), r"--out is now --output"),
    (("measure", "disk", "--rounds", "3"), r"--rounds is now --repetitions"),
    (("index", "in", "--format", "csv"), r"--format is now --input-format"),
    ((*SORT, "--nodes", "3"), r"--nodes needs --cluster; add --cluster or remove --nodes"),
    (("run",), r"missing command; use one of sort"),
    (("measure",), r"missing command; use one of disk"),
    (("catalog",), r"missing command; use one of ls"),
    (("catalog", "ls", "aws-2014"), r"unknown catalog aws-2014 \(did you mean aws-us-east-1-2014"),
    (
        ("catalog", "ls", "in"),
        r"in: not a catalog of offers: column instance_type or machine_type|in: not UTF-8",
    ),
    (("catalog", "ls", "--min-local-disk", "1TX"), r"'1TX' is not a size"),
    (("catalog", "ls", "--min-network", "10"), r"'10' is not a bandwidth; .*200Mbit"),
    (("measure", "ops", "--label", "a=1", "a=2"), r"--label a=2 conflicts with a=1; remove one"),
    (("catalog", "ls", "--max-price", "-1"), r"'-1' is not an amount of money"),
    (("catalog", "ls", "--arch", "x86"), r"--arch x86 is not valid.*; use one of arm64, .*x86_64"),
    (
        ("catalog", "ls", "--provider", "ibm"),
        r"--provider ibm is not valid; use one of aws, azure, gcp",
    ),
    (("catalog", "ls", "--sort", "speed"), r"--sort speed is not valid; use one of price, type"),
    (("catalog", "show", "i4i.4xlage"), r"unknown offer i4i.4xlage \(did you mean i4i.4xlarge\?\)"),
    (("catalog", "diff", "aws-us-east-1-2026", "gcp-us-central1-2026"), r"of the same provider"),
    (("catalog", "refresh", "gcp"), r"gcp: .* cannot be refreshed; use aws"),
    (("catalog", "refresh", "aws", "--region", "us"), r"--region us is not valid; .*us-east-1"),
    (
        ("catalog", "refresh", "aws", "--output", "dir"),
        r"--output dir: use a file name that ends in .csv",
    ),
    (("xyzzy",), r"No such command 'xyzzy'; use one of measure, .*completion \(see"),
    (("run", "short"), r"No such command 'short' \(did you mean sort\?\) \(see --help\)"),
    ((*SORT, "--speed", "9"), r"No such option: --speed \(see --help\)"),
    ((*SORT, "--memry", "9"), r"No such option: --memry \(did you mean --memory\?\)"),
    ((*SORT, "--fault", "f"), r"No such option: --fault \(see|--fault \(did you mean --(?!faults)"),
    (("report", "nope"), r"nope: no such file or directory; use the --output"),
    (("run", "reduce"), r"Missing argument 'JOB'"),
    (
        ("run", "reduce", "kmean", "x"),
        r"JOB kmean is not valid \(did you mean kmeans\?\); use kmeans",
    ),
    (("run", "reduce", "pca"), r"INPUT\.\.\. is missing; add files or directories"),
    (("index",), r"INPUT\.\.\. is missing; add files or directories"),
    ((*SORT, "--memory"), r"'--memory' requires an argument"),
    (("run", "sort", "in", "--output", "out"), r"Missing option '--scratch'"),
    (("run", "sort", "in", "--scratch", "scratch"), r"Missing option '--output'"),
    (("run", "sort", "--output", "out", "--scratch", "dir", "in"), r"INPUT\.\.\. .*before"),
    (("run", "reduce"), r"Missing argument 'JOB'"),
    (
        ("run", "reduce", "kmean", "x"),
        r"kmean is not valid \(did you mean kmeans\?\); use .*MODULE:NAME",
    ),
    (("run", "reduce", "pca"), r"INPUT\.\.\. is missing; add files or directories"),
    (("index",), r"INPUT\.\.\. is missing; add files or directories"),
    (
        ("run", "sort", "none", *SORT[3:]),
        r"none: No such file .*use the path of a file or a directory",
    ),
    (
        ("run", "sort", "cut", *SORT[3:]),
        r"cut: .*99950 .*record size .100.: 50 extra bytes at offset 99900",
    ),
    (
        (*SORT, "--record-bytes", "64"),
        r"in: .* 32 extra bytes at offset 99968.*another record size",
    ),
    ((*SORT, "--record-bytes", "0"), r"'--record-bytes': '0' is not an integer from 1 to"),
    ((*SORT, "--record-bytes", "-7"), r"'--record-bytes': '-7' is not an integer from 1 to"),
    ((*SORT, "--record-bytes", "ten"), r"'--record-bytes': 'ten' is not an integer from 1 to"),
    ((*SORT, "--record-bytes", "9" * 30), r"'--record-bytes': '9+' is not an integer from 1 to"),
    ((*SORT, "--key", "0-10"), r"--key 0-10: use OFFSET:LENGTH"),
    ((*SORT, "--key", "-1:10"), r"--key -1:10: use OFFSET:LENGTH"),
    ((*SORT, "--key", "91:10"), r"--key 91:10 .*100-byte record.*within --record-bytes"),
    ((*SORT, "--key", "5:0"), r"--key 5:0: the length"),
    ((*SORT, "--memory", "lots"), r"'--memory': 'lots' is not a size; use a value like 20TB"),
    ((*SORT, "--memory", "1XB"), r"'--memory': '1XB' is not a size"),
    ((*SORT, "--memory", "-1GB"), r"'--memory': '-1GB' is not a size"),
    ((*SORT, "--memory", "9" * 400), r"'--memory': .* is too large"),
    ((*SORT, "--memory", "8EiB"), r"'--memory': '8EiB' is too large; use less than 9EB"),
    (
        (*SORT, "--memory", "8EB"),
        r"--memory 8EB is more than the \S+ [MG]iB that this .*lower --memory",
    ),
    (("study", "--memory", "1PiB"), r"--memory 1PiB is more than the \S+ [MG]iB .*lower --memory"),
    (("measure", "disk", "--memory", "1PiB"), r"--memory 1PiB is more than the \S+ [MG]iB "),
    (
        ("run", "sort", "in", "./in", *SORT[3:]),
        r"input in is included twice; pass each file only once",
    ),
    (
        ("run", "sort", "full", "full/records", *SORT[3:]),
        r"input full/records is included twice \(by full and by full/records\); pass",
    ),
    (
        ("run", "sort", "link", "in", *SORT[3:]),
        r"input in is included twice \(by link and by in\); pass",
    ),
    ((*SORT, "--memory", "100kB"), r"--memory: 100000 bytes are not enough .*at least \d+ ?MiB"),
    ((*SORT, "--memory", "0"), r"--memory: 0 bytes are not enough .*at least \d+ ?MiB"),
    (
        ("run", "sort", "in", "--output", "cut", "--scratch", "dir"),
        r"--output cut: cut is a file; use",
    ),
    (
        ("run", "sort", "in", "--output", "out", "--scratch", "cut"),
        r"--scratch cut: cut is a file; use",
    ),
    (
        ("run", "sort", "in", "--output", "cut/x", "--scratch", "dir"),
        r"--output cut/x: cut is a file",
    ),
    (
        ("run", "sort", "in", "--output", ".", "--scratch", "dir"),
        r"--output \. is not empty .* cut",
    ),
    (("run", "sort", "in", "--output", "out", "./out", "--scratch", "dir"), r"out is passed twice"),
    (("run", "sort", "in", "--output", "out", "--scratch", "dir", "dir"), r"dir is passed twice"),
    (
        ("run", "sort", "in", "--output", "filled", "--scratch", "dir"),
        r"--output filled is not empty .* below\)",
    ),
    ((*SORT[:5], "--scratch", "out/s"), r"--scratch out/s is inside \S+/out.*outside it"),
    ((*SORT[:5], "out/o", "--scratch", "dir"), r"--output out/o is inside \S+/out.*outside it"),
    (
        ("run", "sort", "dir", "--output", "out", "--scratch", "dir/x/y"),
        r"--scratch dir/x/y is inside \S+/dir.*outside it",
    ),
    (
        ("run", "sort", "dir", "--output", "dir/out", "--scratch", "scratch"),
        r"--output dir/out is inside \S+/dir.*outside it",
    ),
    (("gensort",), r"Missing argument 'RECORDS'"),
    (("gensort", "5"), r"Missing argument 'FILE\.\.\.'"),
    (
        (
            "simulate",
            "sort",
            "--nodes",
            "4",
            "--data",
            "1TB",
            "--lose",
            "4",
            "--offer",
            "i2.8xlarge",
        ),
        r"--lose: must be fewer than the cluster's 4 nodes",
    ),
    (("gensort", "-5", "new"), r"-5: a negative number is not allowed here"),
    (("gensort", "five", "new"), r"'RECORDS': 'five' is not an integer from 0 to"),
    (("gensort", "9" * 30, "new"), r"'RECORDS': '9+' is not an integer from 0 to"),
    (("gensort", str(10**15), "new"), r"bytes free, but generating needs 100000000000000000;"),
    (("gensort", "5", "new", "--start", "-1"), r"'--start': '-1' is not an integer from 0 to"),
    (("gensort", "5", "new", "--start", str(1 << 128)), rf"'--start': .* to {(1 << 128) - 1} "),
    (("gensort", "5", "new", "--start", "²"), r"'--start': '²' is not an integer"),
    (("gensort", "5", "dir"), r"dir exists and is not a regular file; use another name"),
    (("gensort", "5", "none/new"), r"none/new: directory none does not exist; create it first"),
    (("gensort", "5", "new", "new"), r"new is specified twice"),
    (("valsort",), r"FILE_OR_DIR\.\.\. is missing; add files"),
    (("valsort", "none"), r"none: No such file .*use the path of a file or a directory"),
    (("valsort", "cut"), r"cut: .* 50 extra bytes at offset 99900"),
    (("valsort", "in", "--key", "100:1"), r"--key 100:1 .*within --record-bytes"),
    (("measure", "disk", "--dir", "none"), r"--dir none: no such directory; create it"),
    (("measure", "disk", "--dir", "dir", "in"), r"--dir in: in is a file; use a directory"),
    (("measure", "disk", "--dir", "dir", "./dir"), r"--dir dir is passed twice"),
    (
        ("measure", "disk", "--mode", "up"),
        r"--mode up is not valid; use one of wo, ro, rw, headroom",
    ),
    (
        ("measure", "disk", "--size", "5"),
        r"'--size': '5' is too small to measure; use at least 1MB",
    ),
    (("measure", "disk", "--size", "8EiB"), r"'--size': '8EiB' is too large"),
    (
        ("measure", "disk", "--size", "900TB"),
        r"bytes free, but the measurement needs 1800000000000000;",
    ),
    (
        ("measure", "disk", "--seconds", "0"),
        r"'--seconds': '0' is not a time from 0\.1s to 1000000s",
    ),
    (("measure", "disk", "--seconds", "inf"), r"'--seconds': 'inf' is not a time from 0\.1s"),
    (("measure", "disk", "--seconds", "nan"), r"'--seconds': 'nan' is not a time from 0\.1s"),
    (("measure", "disk", "--seconds", "soon"), r"'--seconds': 'soon' is not a time from 0\.1s"),
    (
        ("measure", "disk", "--repetitions", "0"),
        r"'--repetitions': '0' is not an integer from 1 to",
    ),
    (
        ("measure", "disk", "--repetitions", "1.5"),
        r"'--repetitions': '1\.5' is not an integer from 1",
    ),
    (
        ("measure", "ops", "--operation", "read5k"),
        r"--operation read5k is not valid .*; use one of read4k, read4m",
    ),
    (("measure", "ops", "--suite", "all"), r"--suite all is not valid; use one of explore, steady"),
    (("measure", "ops", "--engine", "fast"), r"--engine fast is not valid; use one of ring, sync"),
    (
        ("measure", "ops", "--submission", "x"),
        r"--submission x is not valid; use one of single, batched",
    ),
    (("measure", "ops", "--until-confidence", "2"), r"'--until-confidence': '2' is not a perc"),
    (("measure", "ops", "--dir", "none"), r"--dir none: no such directory; create it"),
    (("measure", "ops", "--file-size", "900TB"), r"bytes free, but the test file needs"),
    (
        ("measure", "over-time", "--every", "soon"),
        r"'--every': 'soon' is not a time; use a value like",
    ),
    (("measure", "over-time", "--for", "0"), r"'--for': '0' must be more than 0 seconds"),
    (
        ("measure", "stream", "--operation", "x"),
        r"--operation x is not valid; use one of write, read",
    ),
    (
        ("measure", "stream", "--block", "1"),
        r"--block: 1 bytes are not a multiple of the transfer size, 1048576",
    ),
    (("measure", "stream", "--transfer", "0"), r"'--transfer': '0' is not a multiple of 4096"),
    (("measure", "stream", "--transfer", "1000"), r"'--transfer': '1000' is not a multiple of"),
    (
        ("measure", "stream", "--block", "0"),
        r"--block: 0 bytes are not a multiple of the transfer size",
    ),
    (("import", "none"), r"none: expected a readable file \(No such file"),
    (("import", "in"), r"in: expected "),
    (("measure", "disk", "--memory", "10kB"), r"--memory: 10000 bytes are not enough"),
    (("study", "--data", "1kB"), r"'--data': '1kB' is too small to measure"),
    (("study", "--data", "1.5"), r"'--data': '1\.5' is too small to measure"),
    (("study", "--dir", "dir", "none"), r"--dir none: no such directory; create it first"),
    (("study", "--data", "big"), r"'--data': 'big' is not a size"),
    (("study", "--dir", "in"), r"--dir in: in is a file; use a directory"),
    (("study", "--dir", "dir", "full", "dir"), r"--dir dir is passed twice"),
    (("study", "--output", "in"), r"--output in: in is a file; use a directory"),
    (("study", "--output", "in/x"), r"--output in/x: in is a file; use a directory"),
    (("study", "now"), r"unexpected extra argument"),
    (("study", "--until", "plan"), r"--until needs --cluster; add --cluster"),
    (("study", "--until", "pla"), r"--until pla is not valid.*; use one of survey, measure"),
    (("study", "--cluster", "auto"), r"--cluster needs --dir; add a directory"),
    (
        ("study", "--cluster", "auto", "--dir", "dir"),
        r"--dir: dir must be an absolute path",
    ),
    (
        ("study", "--cluster", "auto", "--dir", "/a", "--durability", "volumes"),
        r"--durability volumes is not valid",
    ),
]


@pytest.mark.parametrize(("args", "told"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_refused_gets_one_line_that_says_how_to_fix_it(
    call: Call,
    disk: Path,
    records: Path,
    monkeypatch: pytest.MonkeyPatch,
    args: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(disk)
    (disk / "cut").write_bytes(records.read_bytes()[:-50])
    (disk / "dir").mkdir()
    (disk / "filled" / "below").mkdir(parents=True)
    (disk / "full").mkdir()
    (disk / "full" / "records").write_bytes(records.read_bytes())
    (disk / "link").symlink_to("in")
    before = {path: path.read_bytes() for path in (records, disk / "cut")}
    code, out, err = call(*args)
    assert (code, out) == (2, ""), err
    assert re.fullmatch(r"tonnage: [^\n]+\n", err)
    assert re.search(told, err), err
    assert {path: path.read_bytes() for path in before} == before
    known = {"in", "cut", "dir", "filled", "below", "full", "records", "link"}
    left = {path.name for path in disk.rglob("*")} - known
    assert left <= {"scratch"}, left  # An empty directory that was asked for.
