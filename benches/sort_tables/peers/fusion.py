"""DataFusion: `fusion.py FORMAT INPUT OUTPUT MEMORY_MIB THREADS KEY...`."""

import sys

from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

FORMAT, INPUT, OUTPUT, MEMORY, THREADS, *KEYS = sys.argv[1:]
runtime = RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(int(MEMORY) << 20)
context = SessionContext(SessionConfig().with_target_partitions(int(THREADS)), runtime)
order = ", ".join(f'"{key}" NULLS LAST' for key in KEYS)
if FORMAT == "csv":
    context.register_csv("t", INPUT, has_header=True)
    context.sql(f"SELECT * FROM t ORDER BY {order}").write_csv(
        f"{OUTPUT}/out.csv", with_header=True
    )
else:
    context.register_parquet("t", INPUT)
    sorted_rows = context.sql(f"SELECT * FROM t ORDER BY {order}")
    sorted_rows.write_parquet(f"{OUTPUT}/out.parquet", compression="snappy")
