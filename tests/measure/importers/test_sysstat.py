"""sysstat's text, CSV and JSON say the same, in all its forms, and nodes of a run become a job.

The files in recorded/importers/sysstat are real: one sa file, printed by sar and sadf 12.6 in some
formats and locales.
"""

import json
from datetime import datetime
from pathlib import Path

import pytest

from support.cli.command import Tonnage
from support.data.fuzz_importers import SAMPLES
from support.data.sar_texts import LINK, Stretch, sar_text
from tonnage.base.records import Job, Observation
from tonnage.base.system.device_names import UnclearDevices, network_cards, whole_disks
from tonnage.measure.importers.json_reader import parse_documents
from tonnage.measure.importers.metric import UnreadableFile
from tonnage.measure.importers.node_files import read_nodes
from tonnage.measure.importers.sysstat.documents import read_documents
from tonnage.measure.importers.sysstat.samples import HostSamples
from tonnage.measure.importers.sysstat.tables import read_tables
from tonnage.measure.observe.nodes.observation import NoCommonTime, common_time, observe_nodes
from tonnage.measure.observe.to_job import to_job

RECORDED = SAMPLES / "sysstat"


def host_of(name: str) -> HostSamples:
    text = (RECORDED / name).read_text()
    found = read_documents(parse_documents(text)) if name.endswith("json") else read_tables(text)
    (host,) = found
    return host


def host_in(text: str) -> HostSamples:
    (host,) = read_tables(text)
    return host


def observed(directory: Path, **files: str) -> Observation:
    """The run of these files, by name."""
    for name, text in files.items():
        (directory / name).write_text(text)
    imported = read_nodes([directory])
    begin, end = common_time(imported.nodes)
    return observe_nodes(imported.nodes, begin, end, data=None, notes=imported.notes)


# Formats.


@pytest.mark.parametrize("name", ["sar-all.txt", "sadf-d-all.csv"])
def test_formats_say_the_same(name: str) -> None:
    held, expected = host_of(name), host_of("sadf-all.json")
    if name.endswith("csv"):
        expected.cores, expected.kernel = None, None
    else:
        expected.clock = "local time"  # sar does not say which.
    for one, other in (
        (held.disks, expected.disks),
        (held.interfaces, expected.interfaces),
        (held.memory, expected.memory),
    ):
        assert one == other and len(one) >= 7
    assert [(each.moment, each.core) for each in held.cpu] == [
        (each.moment, each.core) for each in expected.cpu
    ]
    for ours, theirs in zip(held.cpu, expected.cpu, strict=True):
        assert (ours.busy, ours.waiting) == pytest.approx((theirs.busy, theirs.waiting), abs=1e-4)
    assert (held.host, held.cores, held.kernel) == ("vm", expected.cores, expected.kernel)
    assert held.clock == expected.clock


@pytest.mark.parametrize("name", ["sar-de.txt", "sar-en-us.txt"])
def test_locales_say_the_same(name: str) -> None:
    """A decimal comma and a date with dots; a 12-hour clock."""
    held, expected = host_of(name), host_of("sar-all.txt")
    assert held.disks == expected.disks and held.interfaces == expected.interfaces
    assert [each.moment.seconds for each in held.cpu] == [
        each.moment.seconds for each in expected.cpu if each.core == "all"
    ]


def test_japanese_times_are_read() -> None:
    text = (RECORDED / "sar-all.txt").read_text().replace("11/20/26", "2026年11月20日")
    text = text.replace("22:01:", "22時01分")
    lines = [f"{line[:8]}秒{line[8:]}" if "時" in line else line for line in text.splitlines()]
    assert host_in("\n".join(lines) + "\n").disks == host_of("sar-all.txt").disks


def test_devices_may_stand_in_the_last_column() -> None:
    assert host_of("sar-d-p.txt").disks == host_of("sar-all.txt").disks


@pytest.mark.parametrize("name", ["iostat-x-t.txt", "iostat-x-t.json"])
def test_the_first_report_of_iostat_only_tells_when_the_next_begins(name: str) -> None:
    held = host_of(name)
    intervals = [each.moment.interval_seconds for each in held.disks]
    assert intervals == [None, 1.0, 1.0] and len(held.cpu) == 3
    assert all({"read", "write", "discard"} == each.transfers.keys() for each in held.disks)


# Times.

HEAD = "Linux 5.4.0 (a) \t12/31/25 \t_x86_64_\t(2 CPU)\n"


def sar_cpu(*lines: str) -> str:
    return "\n".join([HEAD, "23:59:40 CPU %user %nice %system %iowait %steal %idle", *lines, ""])


def test_times_go_on_after_midnight() -> None:
    rows = [f"{time} all 50 0 0 0 0 50" for time in ("23:59:50", "00:00:00", "00:00:10")]
    held = host_in(sar_cpu(*rows))
    assert [each.moment.interval_seconds for each in held.cpu] == [10.0] * 3
    first = held.cpu[0].moment.seconds
    assert first == datetime.fromisoformat("2025-12-31T23:59:50+00:00").timestamp()


def test_a_missing_sample_makes_a_longer_interval() -> None:
    held = host_in(sar_cpu("23:59:50 all 50 0 0 0 0 50", "00:00:10 all 50 0 0 0 0 50"))
    assert [each.moment.interval_seconds for each in held.cpu] == [10.0, 20.0]


def test_times_that_go_back_are_refused() -> None:
    with pytest.raises(UnreadableFile, match=r"times that do not go back.* at line 5"):
        host_in(sar_cpu("23:59:50 all 50 0 0 0 0 50", "23:00:00 all 50 0 0 0 0 50"))


def test_heads_averages_and_comments_are_no_samples() -> None:
    head = "23:59:50 CPU %user %nice %system %iowait %steal %idle"
    row = "00:00:00 all 50 0 0 0 0 50"
    held = host_in(
        sar_cpu(
            "23:59:50 all 50 0 0 0 0 50",
            "",
            head,
            row,
            "00:00:00  COM a note",
            "Durchschn.: all 1 2 3 4 5 6",
        )
    )
    assert [each.moment.interval_seconds for each in held.cpu] == [10.0, 10.0]


def test_a_restart_leaves_a_gap(tmp_path: Path) -> None:
    text = sar_cpu(
        "23:59:50 all 50 0 0 0 0 50",
        "",
        "00:01:00       LINUX RESTART\t(4 CPU)",
        "",
        "00:01:10 CPU %user %nice %system %iowait %steal %idle",
        "00:01:20 all 50 0 0 0 0 50",
        "00:01:30 all 50 0 0 0 0 50",
    )
    held = host_in(text)
    assert held.cores == 4 and len(held.restarts) == 1
    assert [each.moment.interval_seconds for each in held.cpu] == [10.0, 10.0, 10.0]
    seen = observed(tmp_path, a=text)
    assert sum(phase.cpu_seconds for phase in seen.phases) == pytest.approx(4 * 0.5 * 30)
    assert any("a restarted 1 time" in note for note in seen.notes)


def test_a_last_line_without_end_is_left_out(tmp_path: Path) -> None:
    rows = ["23:59:50 all 50 0 0 0 0 50", "00:00:00 all 50 0 0 0 0 50"]
    text = sar_cpu(*rows) + "00:00:10 all 50 0 0"
    seen = observed(tmp_path, a=text)
    assert seen.seconds == 20
    assert any("a ends within a line" in note for note in seen.notes)
    with pytest.raises(UnreadableFile, match=r"7 columns.* at line 6"):
        host_in(f"{text}\n{rows[0]}\n")


def test_used_memory_of_old_versions_is_without_the_page_cache() -> None:
    rows = "kbmemfree kbmemused %memused kbbuffers kbcached kbcommit %commit"
    head = f"{HEAD}\n23:59:40 {rows}\n"
    (held,) = read_tables(f"{head}23:59:50 100 900 90.00 50 600 1 1\n")
    assert held.memory[0].used_bytes == 250 * 1024
    (held,) = read_tables(f"{head}23:59:50 100 250 25.00 50 600 1 1\n")
    assert held.memory[0].used_bytes == 250 * 1024


# Devices.


@pytest.mark.parametrize(
    ("names", "disks"),
    [
        (["sda", "sda1", "sda2", "dm-0", "loop0", "sr0"], {"sda"}),
        (["nvme0n1", "nvme0n1p1", "nvme1n1", "md127"], {"nvme0n1", "nvme1n1"}),
        (["xvda1", "xvdb"], {"xvda1", "xvdb"}),
        (["sda", "centos-root", "centos-swap"], {"sda"}),
        (["mmcblk0", "mmcblk0p1"], {"mmcblk0"}),
        (["dev8-0", "dev253-0", "dev253-1", "dev7-0"], {"dev8-0"}),
        (["dev252-0", "dev252-16"], {"dev252-0", "dev252-16"}),
        (["oddly"], {"oddly"}),
        (["dm-0"], set()),
    ],
)
def test_only_whole_disks_count(names: list[str], disks: set[str]) -> None:
    assert whole_disks(names) == disks


def test_numbers_that_may_be_disks_or_stand_on_them_are_unclear() -> None:
    with pytest.raises(UnclearDevices):
        whole_disks(["dev252-0", "dev253-0"])


@pytest.mark.parametrize(
    ("names", "cards"),
    [
        (["lo", "eth0", "docker0", "veth12ab", "eth0.100"], {"eth0"}),
        (["lo", "enp3s0", "ens5", "bond0", "cni0"], {"enp3s0", "ens5"}),
        (["lo", "p1p1", "br-ab12"], {"p1p1"}),
        (["lo", "net7"], {"net7"}),
        (["lo", "veth0"], {"veth0"}),
        (["lo"], set()),
    ],
)
def test_only_network_cards_count(names: list[str], cards: set[str]) -> None:
    assert network_cards(names) == cards


# Several nodes.

IDLE = Stretch(30)
READS = Stretch(40, busy_percent=80, read_bytes=200e6, util_percent=60, used_kilobytes=3_000_000)
SHUFFLES = Stretch(
    40, busy_percent=20, sent_bytes=1e9, received_bytes=1e9, written_bytes=100e6, util_percent=30
)


def two_nodes(directory: Path) -> Observation:
    """A node, and one that does half of it, whose samples are 3 s later."""
    half = Stretch(40, busy_percent=40, read_bytes=100e6, util_percent=30)
    return observed(
        directory,
        a=sar_text("a", [IDLE, READS, SHUFFLES, IDLE]),
        b=sar_text("b", [IDLE, half, SHUFFLES, IDLE], begin=datetime(2026, 11, 20, 22, 0, 3)),
    )


def test_nodes_are_cut_into_phases_together(tmp_path: Path) -> None:
    seen = two_nodes(tmp_path)
    assert [phase.grows for phase in seen.phases] == [False, True, True, False]
    _, reads, shuffles, _ = seen.phases
    assert reads.seconds == pytest.approx(400, abs=10)
    assert reads.read_bytes == pytest.approx(300e6 * 400, rel=0.02)
    assert reads.cpu_seconds == pytest.approx(4 * 1.2 * 400, rel=0.03)
    assert [node.read_bytes for node in reads.nodes] == pytest.approx([8e10, 4e10], rel=0.03)
    assert sum(node.read_bytes for node in reads.nodes) == pytest.approx(reads.read_bytes, abs=2)
    assert shuffles.network_sent_bytes == pytest.approx(2e9 * 400, rel=0.02)
    assert (reads.bottleneck, shuffles.bottleneck) == ("cpu", "network")
    assert reads.why.startswith("on a, it used 80 % of all cores")
    assert reads.skew == pytest.approx(2 / 1.5, rel=0.02) and shuffles.skew == pytest.approx(
        1, rel=0.02
    )
    assert reads.nodes[0].io_wait_seconds == pytest.approx(4 * 0.02 * 400, rel=0.03)
    assert reads.nodes[0].stolen_seconds == pytest.approx(4 * 0.005 * 400, rel=0.03)
    assert seen.nodes[0].link_bytes_per_second == pytest.approx(LINK, rel=1e-3)
    assert Observation.from_json(json.loads(json.dumps(seen.to_json()))) == seen


def test_nodes_of_a_run_are_a_job_that_divides(tmp_path: Path) -> None:
    seen = two_nodes(tmp_path)
    job = to_job("night", seen)
    assert job and job.divisible and (job.settings["nodes"], job.settings["cores"]) == (2, 8)
    # What was before and after the run is not known to be part of it.
    assert [phase.name for phase in job.phases] == ["phase-2", "phase-3"]
    demands = {demand.resource: demand for demand in job.phases[1].demands}
    assert seen.input_bytes == seen.phases[1].read_bytes
    # Each of two nodes keeps half of what it shuffles.
    assert demands["network"].shuffled
    assert demands["network"].per_byte * seen.input_bytes / 2 == pytest.approx(8e11, rel=0.02)
    memory = next(room for room in job.room if room.where == "memory")
    # One of them has 1e6 KiB more than when it is idle.
    assert memory.per_byte * seen.input_bytes == pytest.approx(1e6 * 1024)


def test_what_comes_from_outside_is_not_shuffled(tmp_path: Path) -> None:
    gets = Stretch(40, busy_percent=50, received_bytes=5e8, sent_bytes=1e8)
    seen = observed(tmp_path, a=sar_text("a", [gets]), b=sar_text("b", [gets]))
    job = to_job("gets", observe_with(seen, 10**12))
    assert job
    network = {
        demand.shuffled: demand.per_byte * 1e12
        for demand in job.phases[0].demands
        if demand.resource == "network"
    }
    assert network == {
        True: pytest.approx(2 * 2 * 1e8 * 400, rel=0.01),
        False: pytest.approx(2 * 4e8 * 400, rel=0.01),
    }


def observe_with(seen: Observation, data: int) -> Observation:
    from support.data.copies import replace

    return replace(seen, input_bytes=data)


def test_only_the_time_that_nodes_have_in_common_counts(tmp_path: Path) -> None:
    late = datetime(2026, 11, 20, 22, 5, 0)
    seen = observed(tmp_path, a=sar_text("a", [IDLE, READS]), b=sar_text("b", [READS], begin=late))
    assert seen.seconds == 400
    assert any("only the 6 min 40 s count" in note or "a had more" in note for note in seen.notes)
    with pytest.raises(NoCommonTime, match="a ends at 2026-11-20 22:05:00, before b begins"):
        observed(
            tmp_path, a=sar_text("a", [IDLE]), b=sar_text("b", [READS], begin=late.replace(hour=23))
        )


def test_files_of_two_tools_are_of_one_node(tmp_path: Path) -> None:
    """iostat tells reads from writes, so its disks count, and sar's cores."""
    text = (RECORDED / "iostat-x-t.txt").read_text().replace("11/28/26 10:06:4", "11/20/26 22:01:5")
    seen = observed(tmp_path, **{"a.iostat": text, "a.sar": (RECORDED / "sar-all.txt").read_text()})
    (node,) = seen.nodes
    assert node.samples == 8 and seen.operations_of == "all on the devices"


def test_two_files_of_one_host_at_one_time_are_refused(tmp_path: Path) -> None:
    same = sar_text("same", [READS])
    with pytest.raises(UnreadableFile, match=r"a: expected other times than in .*b, as both have"):
        observed(tmp_path, a=same, b=same)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("binary", "\x96\x75", "text of sar or iostat, or sadf -d or -j"),
        ("only-disks", (RECORDED / "sadf-d.csv").read_text(), "statistics of all cores"),
        ("spark", '{"Event":"SparkListenerLogStart"}\n', "text of sar or iostat"),
        ("cut", (RECORDED / "sadf-all.json").read_text()[:9000], "complete JSON"),
        (
            "units",
            HEAD + "\n23:59:40 DEV tps rkB/s wkB/s %util\n23:59:50 sda 1 1.5k 0 0\n",
            "rkB/s .without units. as a number at line 4",
        ),
        (
            "horizontal",
            "# hostname;interval;timestamp;CPU;%idle[...]\na;1;2026-11-20 22:01:51 UTC;-1;5\n",
            "sadf -d without -h",
        ),
    ],
)
def test_foreign_files_are_refused_in_a_line(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UnreadableFile, match=said) as why:
        read_nodes([tmp_path])
    assert str(why.value).startswith(str(tmp_path / name)) and str(why.value).isprintable()


def test_binary_samples_are_refused_with_the_command_that_converts_them(tmp_path: Path) -> None:
    (tmp_path / "sa20").write_bytes(b"\x96\xd5\x75\x21" + bytes(100))
    with pytest.raises(UnreadableFile, match=r"sa20: .*sadf -j FILE -- -A"):
        read_nodes([tmp_path])


def test_a_directory_becomes_a_job_that_is_planned(tonnage: Tonnage, tmp_path: Path) -> None:
    night = tmp_path / "night"
    night.mkdir()
    for name in "abc":
        (night / f"{name}.txt").write_text(sar_text(name, [IDLE, READS, SHUFFLES, IDLE]))
    job = tmp_path / "job.json"
    done = tonnage.run("import", night, "--data", "1TB", "--output", job, check=True)
    assert "3 nodes with 12 cores" in done.stdout and "phase-3" in done.stdout
    assert Job.read(job).seen_bytes == 10**12 and Job.read(job).name == "night"
    assert len(Observation.read(tmp_path / "job-observation.json").nodes) == 3
    planned = tonnage.run("plan", job, "--data", "1TB", "--provider", "aws", check=True)
    assert "phase-3" in planned.stdout
    refused = tonnage.run("import", night, "--output", tmp_path / "jobs")
    assert refused.returncode == 2 and "ends in .json" in refused.stderr
