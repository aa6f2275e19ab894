"""What an event log says of a run, next to what the kernel counted of its executor.

    PYTHONPATH=python:tests PYTHON benches/event_logs/kernel.py [--rows 2000000] [--sorts 3]

PYTHON has PySpark, msgspec, NumPy and PyArrow. One executor with one core sorts a table several
times. Its CPU time by thread is from ``/proc/PID/task/*/stat``, its bytes from ``/proc/PID/io``:
``rchar`` and ``wchar``, since the page cache hides what reaches the disk. The log's input and
shuffle are compared with these; Spark writes a shuffle of at most 200 partitions twice
(`BypassMergeSortShuffleWriter`), and the executor reads its own code, which is subtracted as it was
before the first task. The claim: CPU time of the threads of tasks within 5 %, bytes within 3 %.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tonnage.base.records.application import Application
from tonnage.measure.importers.spark.log_files import local_log
from tonnage.measure.importers.spark.read import read_event_log

TICKS = os.sysconf("SC_CLK_TCK")
EXECUTOR = b"CoarseGrainedExecutorBackend"
TASKS = "Executor task l"
"""The kernel's name of the threads that run tasks, of which it keeps 15 letters."""
SAMPLE_SECONDS = 0.2
MAX_CPU, MAX_BYTES = 0.05, 0.03


def sort_table(data: str, rows: int, sorts: int) -> None:
    """The program that is watched."""
    spark = SparkSession.builder.appName("sort").getOrCreate()
    table = spark.range(rows, numPartitions=8)
    text = f.sha2(f.col("id").cast("string"), 256)
    table.select("id", text.alias("text")).write.option("compression", "none").parquet(data)
    for _ in range(sorts):
        ordered = spark.read.parquet(data).repartition(8, "id").sortWithinPartitions("text")
        ordered.write.format("noop").mode("overwrite").save()
    spark.stop()


def watch(
    work: Path, rows: int, sorts: int
) -> tuple[Application, Counter[str], list[dict[str, int]]]:
    """Run the program; returns its log, the CPU seconds of threads, and the samples of bytes."""
    (work / "logs").mkdir()
    home = _find_spark_home()
    settings = {
        "spark.master": "local-cluster[1,1,2048]",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (work / "logs").as_uri(),
        "spark.ui.enabled": "false",
        "spark.local.dir": str(work / "scratch"),
        "spark.sql.adaptive.enabled": "false",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    program = [__file__, "--watched", str(work / "data"), f"--rows={rows}", f"--sorts={sorts}"]
    process = subprocess.Popen(
        [f"{home}/bin/spark-submit", *options, *program],
        env=os.environ
        | {"SPARK_HOME": home, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stderr=(work / "stderr").open("wb"),
        cwd=work,
    )
    threads: dict[str, tuple[str, float]] = {}
    samples: list[dict[str, int]] = []
    executor: Path | None = None
    while process.poll() is None:
        executor = executor or _executor(process.pid)
        if executor is not None:
            try:
                threads |= {task.name: _cpu(task) for task in (executor / "task").iterdir()}
                counters = (line.split(": ") for line in (executor / "io").read_text().splitlines())
                samples.append({name: int(value) for name, value in counters})
            except OSError:  # It ends.
                pass
        time.sleep(SAMPLE_SECONDS)
    if process.returncode:
        raise SystemExit(f"Spark failed: {(work / 'stderr').read_text()[-2000:]}")
    (log,) = (work / "logs").iterdir()
    cpu = Counter[str]()
    for name, seconds in threads.values():
        cpu[name] += seconds
    return read_event_log(local_log(log)), cpu, samples


def _executor(driver: int) -> Path | None:
    """The executor's directory in ``/proc``: a child of one of the driver's threads."""
    for listed in Path(f"/proc/{driver}/task").glob("*/children"):
        try:
            for child in listed.read_text().split():
                if EXECUTOR in Path(f"/proc/{child}/cmdline").read_bytes():
                    return Path(f"/proc/{child}")
        except OSError:
            continue
    return None


def _cpu(task: Path) -> tuple[str, float]:
    name, _, fields = (task / "stat").read_text().partition("(")[2].rpartition(")")
    return name.rstrip("0123456789# "), sum(map(int, fields.split()[11:13])) / TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--sorts", type=int, default=3)
    parser.add_argument("--watched", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.watched:
        sort_table(arguments.watched, arguments.rows, arguments.sorts)
        return
    with tempfile.TemporaryDirectory(prefix="event-logs-") as directory:
        application, cpu, samples = watch(Path(directory), arguments.rows, arguments.sorts)
    stages = application.stages
    shuffled = sum(each.shuffle_written_bytes for each in stages)
    read = sum(sum(each.read_bytes.values()) for each in stages)
    read += sum(each.shuffle_local_bytes + each.shuffle_remote_bytes for each in stages)
    written = 2 * shuffled + sum(sum(each.written_bytes.values()) for each in stages)
    code = next(each["rchar"] for each in reversed(samples) if each["wchar"] < 1e6)
    pairs = {
        "CPU seconds of tasks": (sum(each.cpu_seconds for each in stages), cpu[TASKS], MAX_CPU),
        "bytes read": (read, samples[-1]["rchar"] - code, MAX_BYTES),
        "bytes written": (written, samples[-1]["wchar"], MAX_BYTES),
    }
    for name, (logged, counted, _) in pairs.items():
        print(f"{name}: log {logged:.6g}, kernel {counted:.6g} ({logged / counted - 1:+.2%})")
    print(f"garbage collection in the log: {sum(each.gc_seconds for each in stages):.2f} s")
    others = ", ".join(f"{name} {seconds:.2f}" for name, seconds in cpu.most_common(10))
    print(f"CPU seconds of threads: {others}; all {cpu.total():.2f}")
    missed = [name for name, (logged, seen, most) in pairs.items() if abs(logged / seen - 1) > most]
    if missed:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
