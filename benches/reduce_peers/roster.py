"""The systems: their commands, jobs and tolerances.

Every peer is a program that is called with a task, as peers/task.py describes.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import stores

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
TOOLS = HERE / ".tools"
PYTHON = HERE / ".venv/bin/python"
JOBS = ("kmeans", "covariance", "pagerank", "histogram")
TONNAGE, TONNAGE_NUMPY, PROTOTYPE, NUMPY = "tonnage", "tonnage-numpy", "prototype", "numpy-boto3"
MLLIB, HADOOP = "mllib", "hadoop"
SPARK = next(HERE.glob(".venv/lib/python3*/site-packages/pyspark"), HERE)
S3A = f"{HERE / 's3a'}:{TOOLS / 's3a'}/*"
"""Class path of Hadoop's S3 client and its configuration."""
SUBMIT = ["--properties-file", str(PEERS / "spark.conf"), "--driver-class-path", S3A]
JAR = str(TOOLS / "peers.jar")
HADOOP_HEAP = "-Xmx4g"
EXACT = 1e-9
"""Tolerance for sums of floating point numbers in another order."""


@dataclass(frozen=True)
class System:
    """One of the compared systems."""

    name: str
    program: list[str]
    package: str
    """Package whose version is shown."""
    arguments: tuple[str, ...] = ()
    """Arguments after the task."""
    jobs: tuple[str, ...] = JOBS
    tolerances: Mapping[str, float] = field(default_factory=dict)
    """Largest errors of its answers, where not ``EXACT``."""
    slow: bool = False
    """It takes minutes: it runs in the first round only, with one warm iteration."""
    note: str = ""

    def command(self, task: Path) -> list[str]:
        return [*self.program, str(task), *self.arguments]

    def tolerance(self, job: str) -> float:
        return self.tolerances.get(job, EXACT)

    def version(self) -> str | None:
        """Return its version, or None if it is not installed."""
        code = f"from importlib.metadata import version; print(version({self.package!r}))"
        command = [str(PYTHON), "-c", code]
        if self.package == TONNAGE:
            command = [sys.executable, "-m", TONNAGE, "--version"]
        elif self.package == PROTOTYPE:
            command = [*self.program, "--version"]
        elif self.package == HADOOP:
            command = ["java", "-cp", f"{SPARK}/jars/*", "org.apache.hadoop.util.VersionInfo"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment())
        except OSError:
            return None
        found = re.search(r"\d+(\.\d+)+\S*", done.stdout)
        return found.group() if found and done.returncode == 0 else None


def environment() -> dict[str, str]:
    """Return the environment of every peer; its workers are threads, so BLAS has one each."""
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    path = os.pathsep.join(filter(None, [str(PEERS), os.environ.get("PYTHONPATH")]))
    spark = {
        "PYSPARK_SUBMIT_ARGS": shlex.join([*SUBMIT, "pyspark-shell"]),
        "PYSPARK_PYTHON": str(PYTHON),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    keys = stores.KEYS | {"AWS_DEFAULT_REGION": stores.KEYS["AWS_REGION"]}
    return {**os.environ, **keys, **one, **spark, "PYTHONPATH": path}


def _python(program: str) -> list[str]:
    return [str(PYTHON), str(PEERS / program)]


def _spark(how: str, jobs: tuple[str, ...] = JOBS, slow: bool = False) -> System:
    return System(
        f"spark-{how}", _python("spark_rdd.py"), "pyspark", arguments=(how,), jobs=jobs, slow=slow
    )


def _hadoop(name: str, how: str) -> System:
    classes = f"{JAR}:{S3A}:{SPARK}/jars/*"
    program = ["java", HADOOP_HEAP, "-cp", classes, "HadoopReduce"]
    return System(name, program, HADOOP, arguments=(how,), jobs=("kmeans",), slow=True)


OWN = [sys.executable, str(PEERS / "tonnage_reduce.py")]
ROSTER = [
    System(TONNAGE, OWN, TONNAGE),
    System(TONNAGE_NUMPY, OWN, TONNAGE, arguments=("numpy",)),
    System(PROTOTYPE, [str(TOOLS / "prototype")], PROTOTYPE),
    System(NUMPY, _python("numpy_boto3.py"), "numpy"),
    System(
        "sklearn-partial",
        _python("sklearn_partial.py"),
        "scikit-learn",
        jobs=("kmeans", "covariance"),
        tolerances={"kmeans": 0.05},
        note="k-means: another algorithm, which moves centres with each object",
    ),
    System("datafusion", _python("datafusion_sql.py"), "datafusion", note="Parquet"),
    System("dask", _python("dask_delayed.py"), "dask"),
    System("ray-actors", _python("ray_actors.py"), "ray"),
    System("ray-data", _python("ray_data.py"), "ray"),
    _spark("boto3"),
    _spark("s3a"),
    _spark("pairs", ("kmeans",), slow=True),
    _spark("pairs-no-combiner", ("kmeans",), slow=True),
    System(
        MLLIB,
        [str(SPARK / "bin/spark-submit"), *SUBMIT, "--class", "MLlib", JAR],
        "pyspark",
        jobs=("kmeans", "covariance"),
        slow=True,
    ),
    _hadoop(HADOOP, "combiner"),
    _hadoop("hadoop-no-combiner", "no-combiner"),
]
