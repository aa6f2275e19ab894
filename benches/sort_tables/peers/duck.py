"""DuckDB: `duck.py FORMAT INPUT OUTPUT MEMORY_MIB THREADS KEY...`."""

import sys

import duckdb

FORMAT, INPUT, OUTPUT, MEMORY, THREADS, *KEYS = sys.argv[1:]
connection = duckdb.connect()
connection.execute(f"SET memory_limit = '{MEMORY}MiB'")
connection.execute(f"SET threads = {THREADS}")
connection.execute(f"SET temp_directory = '{OUTPUT}/tmp'")
connection.execute("SET preserve_insertion_order = false")
order = ", ".join(f'"{key}" NULLS LAST' for key in KEYS)
if FORMAT == "csv":
    source, target = f"read_csv('{INPUT}/*.csv')", f"'{OUTPUT}/out.csv' (FORMAT csv, HEADER)"
else:
    source = f"read_parquet('{INPUT}/*.parquet')"
    target = f"'{OUTPUT}/out.parquet' (FORMAT parquet, COMPRESSION snappy)"
connection.execute(f"COPY (SELECT * FROM {source} ORDER BY {order}) TO {target}")
