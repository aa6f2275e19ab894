"""Run the programs with a Spark and record their event logs, without what identifies a machine.

    python tests/support/spark/record_logs.py DIR --prefix spark-4.0 --programs sort --codecs lz4

Needs PySpark and its Java (of Spark 3.0: Java 11). Spark writes each log as plain text. This
removes what identifies the machine, and compresses it with Spark's own codecs. Spark has no gzip:
that log was compressed by hand.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs.py")
REMOVED = ("System Properties", "Hadoop Properties", "Classpath Entries", "Metrics Properties")
KEPT = re.compile(
    r"spark\.(executor|driver|dynamicAllocation|memory|sql\.shuffle|default|master|app\.name)\b"
)
OPENED = (
    *("lang", "lang.invoke", "lang.reflect", "io", "net", "nio"),
    *("util", "util.concurrent", "util.concurrent.atomic"),
)
OPENS = " ".join(
    [
        *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED),
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    ]
)
"""What releases before 3.3 need of Java 17."""


def run(program: str, data: Path, work: Path, settings: dict[str, str]) -> Path:
    """Run a program; returns its event log."""
    logs = work / "logs"
    logs.mkdir(exist_ok=True)
    before = {*logs.iterdir()}
    settings = {
        "spark.master": "local-cluster[2,1,1024]",
        "spark.executor.memory": "512m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.driver.extraJavaOptions": OPENS,
        "spark.executor.extraJavaOptions": OPENS,
        "spark.sql.shuffle.partitions": "6",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(work / "scratch"),
    } | settings
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    find_home = "from pyspark.find_spark_home import _find_spark_home as find; print(find())"
    found = subprocess.run([sys.executable, "-c", find_home], stdout=subprocess.PIPE, check=True)
    home = found.stdout.decode().strip()
    subprocess.run(
        [f"{home}/bin/spark-submit", *options, PROGRAMS, program, data, work / f"output-{program}"],
        check=program != "failing",
        env=os.environ
        | {
            "SPARK_HOME": home,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_USER": "spark",
        },
        stderr=(work / "stderr").open("wb"),
        cwd=work,
    )
    (made,) = {*logs.iterdir()} - before
    return made


def cleaned(line: str) -> str:
    """An event without what identifies the machine: paths, ports, process ids and properties."""
    event = json.loads(line)
    for name in REMOVED:
        if name in event:
            event[name] = {}
    for name in ("Spark Properties", "Properties"):
        if name in event:
            event[name] = {
                key: value
                for key, value in event[name].items()
                if KEPT.match(key) or key == "spark.sql.execution.id"
            }
            event[name].pop("spark.driver.extraJavaOptions", None)
            event[name].pop("spark.executor.extraJavaOptions", None)
            event[name].pop("spark.app.initial.file.urls", None)
    if "JVM Information" in event:
        event["JVM Information"] = {"Java Version": event["JVM Information"]["Java Version"]}
    if "Executor Info" in event:
        for name in ("Log Urls", "Attributes"):
            event["Executor Info"][name] = {}
    for info in [event["Stage Info"]] if "Stage Info" in event else event.get("Stage Infos", []):
        info["Details"] = ""
    if "details" in event:
        event["details"] = ""
    text = json.dumps(event, separators=(",", ":"))
    text = re.sub(r"\b\d+\.\d+\.\d+\.\d+(?=[:\"])", "host-1", text)
    return re.sub(r"/tmp/[\w.-]+", "/data", text)


def compress(plain: Path, codec: str) -> Path:
    """Compress a file with a codec of Spark's, in Spark."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").getOrCreate()
    jvm = session._jvm
    conf = session.sparkContext._jsc.sc().conf()
    stream = jvm.org.apache.spark.io.CompressionCodec.createCodec(conf, codec)
    path = plain.with_name(f"{plain.name}.{codec}")
    with path.open("wb"):
        pass
    out = stream.compressedOutputStream(jvm.java.io.FileOutputStream(str(path)))
    out.write(plain.read_bytes())
    out.close()
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--programs", nargs="+", required=True)
    parser.add_argument("--codecs", nargs="*", default=["zstd"])
    parser.add_argument("--conf", nargs="*", default=[], help="NAME=VALUE, of Spark")
    parser.add_argument("--prefix", required=True, help="of the files' names, like spark-4.0")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    settings = dict(each.split("=", 1) for each in arguments.conf)
    with tempfile.TemporaryDirectory(prefix="spark-logs-") as directory:
        work = Path(directory)
        data = work / "data"
        run("generate", data, work, {})
        for program in arguments.programs:
            log = run(program, data, work, settings)
            name = f"{arguments.prefix}-{program.replace('_', '-')}"
            parts = sorted(log.glob("events_*")) if log.is_dir() else [log]
            for part in parts:
                plain = arguments.directory / name
                if log.is_dir():
                    plain = arguments.directory / f"eventlog_v2_{name}" / part.name
                    plain.parent.mkdir(exist_ok=True)
                lines = part.read_text().splitlines()
                plain.write_text("".join(f"{cleaned(line)}\n" for line in lines))
                for codec in arguments.codecs:
                    compress(plain, codec)
                if arguments.codecs:
                    plain.unlink()


if __name__ == "__main__":
    main()
