"""PySpark: DataFrame.sort between a Python data source that reads raw records and one that writes.

Half of the memory is the JVM's heap; the rest is the JVM's other memory, a Python
worker for each CPU, and page cache. Spark spills by itself. The conversion both ways is timed.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import BinaryType, StructField, StructType
from records import Job, job, key_value_batches, write

PARTITION_BYTES = 128 << 20


def partitions(task: Job) -> int:
    return max(task.cpus, -(-task.input.stat().st_size // PARTITION_BYTES))


@dataclass
class Slice(InputPartition):
    start: int
    count: int


class Reader(DataSourceReader):
    def __init__(self, task: Job) -> None:
        self.task = task

    def partitions(self) -> list[Slice]:
        return [Slice(start, count) for start, count in self.task.slices(partitions(self.task))]

    def read(self, partition: Slice) -> Iterator[pa.RecordBatch]:
        return key_value_batches(self.task.input, partition.start, partition.count)


class Writer(DataSourceArrowWriter):
    def __init__(self, task: Job) -> None:
        self.task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        number = TaskContext.get().partitionId()
        with (self.task.output / f"part-{number:05}").open("wb", buffering=0) as file:
            write(file, iterator)
        return WriterCommitMessage()


class Records(DataSource):
    task: Job

    @classmethod
    def name(cls) -> str:
        return "records"

    def schema(self) -> StructType:
        return StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])

    def reader(self, schema: StructType) -> Reader:
        return Reader(self.task)

    def writer(self, schema: StructType, overwrite: bool) -> Writer:
        return Writer(self.task)


def main() -> None:
    Records.task = task = job("pyspark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master(f"local[{task.cpus}]")
        .config("spark.driver.memory", f"{task.memory_mb // 2}m")
        .config("spark.local.dir", str(task.scratch))
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.shuffle.partitions", partitions(task))
        .getOrCreate()
    )
    session.dataSource.register(Records)
    session.read.format("records").load().sort("key").write.format("records").mode("append").save()
    session.stop()


if __name__ == "__main__":
    main()
