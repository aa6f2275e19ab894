"""Small Spark programs whose event logs the tests read; `record_logs.py` runs them.

    python programs.py NAME DATA OUTPUT

Only data frames without Python functions, so that also Spark 3.0 runs them; `words` and `failing`
run Python workers.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

ROWS = 200_000


def generate(spark: SparkSession, data: Path, output: Path) -> None:
    rows = spark.range(ROWS, numPartitions=4)
    keys = (f.hash("id") % 5000).alias("key")
    rows.select("id", keys, f.md5(f.col("id").cast("string")).alias("text")).write.mode(
        "overwrite"
    ).parquet(str(data))


def sort(spark: SparkSession, data: Path, output: Path) -> None:
    table = spark.read.parquet(str(data))
    table.repartition(6, "key").sortWithinPartitions("text").write.mode("overwrite").parquet(
        str(output)
    )


def skewed_join(spark: SparkSession, data: Path, output: Path) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", -1)
    spark.conf.set("spark.sql.adaptive.enabled", False)
    table = spark.read.parquet(str(data))
    skewed = table.withColumn("key", f.when(f.col("id") % 2 == 0, 7).otherwise(f.col("key")))
    dimension = spark.range(5000).withColumnRenamed("id", "key")
    joined = skewed.join(dimension, "key").groupBy("key").agg(f.count("*").alias("rows"))
    joined.write.mode("overwrite").parquet(str(output))


def cached(spark: SparkSession, data: Path, output: Path) -> None:
    """Iterations over a cached table, as of k-means."""
    table = spark.read.parquet(str(data)).select("key", "id").cache()
    for center in (0, 100, 200):
        table.agg(f.sum(f.abs(f.col("key") - center))).collect()


def spilling(spark: SparkSession, data: Path, output: Path) -> None:
    """A sort whose execution memory is too small for a partition."""
    table = spark.read.parquet(str(data)).repartition(2)
    for _ in range(4):
        table = table.union(table)
    wide = table.select("*", f.sha2("text", 512).alias("more")).coalesce(2)
    wide.sortWithinPartitions("more").write.format("noop").mode("overwrite").save()


def words(spark: SparkSession, data: Path, output: Path) -> None:
    lines = spark.sparkContext.parallelize(["a b c a", "b c d"] * 5000, 4)
    counts = lines.flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(int.__add__, 3)
    counts.saveAsTextFile(str(output))


def failing(spark: SparkSession, data: Path, output: Path) -> None:
    """A first stage in which a task fails until its job does."""

    def divide(number: int) -> float:
        return 1 / (number - 5)

    spark.sparkContext.parallelize(range(100), 4).map(divide).sum()


PROGRAMS = {
    "generate": generate,
    "sort": sort,
    "skewed_join": skewed_join,
    "cached": cached,
    "spilling": spilling,
    "words": words,
    "failing": failing,
}


if __name__ == "__main__":
    name, data_path, output_path = sys.argv[1:]
    session = SparkSession.builder.appName(name).getOrCreate()
    try:
        PROGRAMS[name](session, Path(data_path), Path(output_path))
    finally:
        session.stop()
