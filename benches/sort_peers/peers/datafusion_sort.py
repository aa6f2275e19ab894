import os
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext
import pyarrow as pa
from records import WHOLE, KEY_VALUE, job, whole_batches, key_value_batches, write
import time
task = job("datafusion")
mode=os.environ.get("MODE","kv")
path=task.scratch/"in.arrow"
t=time.time()
schema,gen=(KEY_VALUE,key_value_batches) if mode=="kv" else (WHOLE,whole_batches)
with pa.OSFile(str(path),"wb") as f, pa.ipc.new_file(f, schema) as w:
    for b in gen(task.input,0,task.records): w.write_batch(b)
print("convert",time.time()-t)
rt = RuntimeEnvBuilder().with_disk_manager_specified(str(task.scratch)).with_fair_spill_pool(int(task.memory_mb*float(os.environ.get("FR","0.4"))) << 20)
ctx = SessionContext(SessionConfig().with_target_partitions(task.cpus), rt)
ctx.register_arrow("source", str(path))
key = schema.names[0]
with (task.output / "sorted").open("wb", buffering=0) as file:
    write(file, (b.to_pyarrow() for b in ctx.sql(f"SELECT * FROM source ORDER BY {key}").execute_stream()))
path.unlink()
