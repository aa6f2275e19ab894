"""Six Spark programs that make their own input: what each limits differs.

    wordcount     cores: words of lines are counted
    sort          disks and network: rows are sorted in all by a key
    join          the longest task: a third of the rows of one side have the same key
    kmeans        memory and cores: points are cached and read again in each iteration
    pagerank      the driver and many short stages: ranks of a graph, joined in each iteration
    aggregate     disks: long strings are collected by group, and spill

Run by spark-submit or python with PySpark: programs.py PROGRAM SCALE
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

WORDS = 20_000
PARTITIONS = 24
ITERATIONS = 6


def rows(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, PARTITIONS)


def hashed(seed: int, most: int) -> f.Column:
    """A number from 0 that looks random, the same in each run."""
    return f.pmod(f.xxhash64("id", f.lit(seed)), f.lit(most))


def consume(result: DataFrame) -> None:
    """Compute all of a result, and store nothing."""
    result.write.format("noop").mode("overwrite").save()


def wordcount(spark: SparkSession, scale: float) -> None:
    word = [f.concat(f.lit("w"), hashed(each, WORDS).cast("string")) for each in range(12)]
    lines = rows(spark, int(900_000 * scale)).select(f.concat_ws(" ", *word).alias("line"))
    words = lines.select(f.explode(f.split("line", " ")).alias("word"))
    consume(words.groupBy("word").count())


def sort(spark: SparkSession, scale: float) -> None:
    payload = f.concat(*(f.sha2(f.concat("id", f.lit(each)), 256) for each in range(4)))
    records = rows(spark, int(1_200_000 * scale)).select(
        hashed(1, 1 << 60).alias("key"), payload.alias("payload")
    )
    consume(records.orderBy("key"))


def join(spark: SparkSession, scale: float) -> None:
    count = int(2_500_000 * scale)
    key = f.when(hashed(1, 3) == 0, f.lit(0)).otherwise(hashed(2, count // 10))
    text = f.sha1(f.col("id").cast("string"))
    left = rows(spark, count).select(key.alias("key"), text.alias("a"))
    right = rows(spark, count // 10).select(f.col("id").alias("key"), text.alias("b"))
    joined = left.join(right, "key")
    consume(joined.select(f.sha2(f.concat("a", "b"), 256)))


def kmeans(spark: SparkSession, scale: float) -> None:
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.feature import VectorAssembler

    names = [f"x{each}" for each in range(16)]
    points = rows(spark, int(500_000 * scale)).select(
        *((hashed(at, 1_000_000) / 1e6).alias(name) for at, name in enumerate(names))
    )
    vectors = VectorAssembler(inputCols=names, outputCol="features").transform(points)
    vectors = vectors.select("features").cache()
    KMeans(k=24, maxIter=ITERATIONS, tol=0.0, seed=1, initMode="random").fit(vectors)


def pagerank(spark: SparkSession, scale: float) -> None:
    count = int(150_000 * scale)
    edges = rows(spark, 6 * count).select(
        hashed(1, count).alias("from"), hashed(2, count).alias("to")
    )
    degrees = edges.groupBy("from").count().withColumnRenamed("count", "degree")
    links = edges.join(degrees, "from").cache()
    ranks = rows(spark, count).select(f.col("id").alias("from"), f.lit(1.0).alias("rank"))
    for _ in range(ITERATIONS):
        given = links.join(ranks, "from").select("to", (f.col("rank") / f.col("degree")).alias("r"))
        ranks = (
            given.groupBy("to")
            .agg(f.sum("r").alias("s"))
            .select(f.col("to").alias("from"), (0.15 + 0.85 * f.col("s")).alias("rank"))
        )
        ranks = ranks.localCheckpoint()
    consume(ranks)


def aggregate(spark: SparkSession, scale: float) -> None:
    count = int(1_600_000 * scale)
    text = f.concat(*(f.sha2(f.concat("id", f.lit(each)), 256) for each in range(2)))
    wide = rows(spark, count).select(hashed(1, count // 8).alias("key"), text.alias("text"))
    groups = wide.groupBy("key").agg(f.sort_array(f.collect_list("text")).alias("texts"))
    consume(groups.select("key", f.sha1(f.concat_ws("", "texts"))))


PROGRAMS: dict[str, Callable[[SparkSession, float], None]] = {
    each.__name__: each for each in (wordcount, sort, join, kmeans, pagerank, aggregate)
}


def main() -> None:
    name, scale = sys.argv[1], float(sys.argv[2])
    spark = SparkSession.builder.appName(name).getOrCreate()
    PROGRAMS[name](spark, scale)
    spark.stop()


if __name__ == "__main__":
    main()
