"""Polars: `polar.py FORMAT INPUT OUTPUT MEMORY_MIB THREADS KEY...`; it has no limit of memory."""

import os
import sys

FORMAT, INPUT, OUTPUT, MEMORY, THREADS, *KEYS = sys.argv[1:]
os.environ["POLARS_MAX_THREADS"] = THREADS
os.environ["POLARS_TEMP_DIR"] = OUTPUT

import polars as pl  # noqa: E402

if FORMAT == "csv":
    pl.scan_csv(f"{INPUT}/*.csv").sort(*KEYS, nulls_last=True).sink_csv(f"{OUTPUT}/out.csv")
else:
    rows = pl.scan_parquet(f"{INPUT}/*.parquet").sort(*KEYS, nulls_last=True)
    rows.sink_parquet(f"{OUTPUT}/out.parquet", compression="snappy")
