"""Write a long event log of realistic lines, by repeating those of a recorded one.

    python tests/support/spark/long_log.py LOG OUTPUT --bytes 1000000000 [--stages 10]

Each task's end and start of the recorded log become those of many tasks with other numbers, times
and amounts; all other events stay as they are, once.
"""

import argparse
import json
import random
from pathlib import Path


def write_long_log(recorded: Path, output: Path, least_bytes: int, stages: int) -> int:
    """Write at least so many bytes; returns the number of tasks."""
    chance = random.Random(1)
    lines = recorded.read_text().splitlines()
    ends = [json.loads(line) for line in lines if '"Event":"SparkListenerTaskEnd"' in line]
    completed = [json.loads(line) for line in lines if '"SparkListenerStageCompleted"' in line]
    tail = lines.pop() if "SparkListenerApplicationEnd" in lines[-1] else ""
    began = max(event["Task Info"]["Finish Time"] for event in ends)
    written = tasks = 0
    with output.open("w") as file:
        written += file.write("".join(f"{line}\n" for line in lines))
        for number in range(stages):
            stage = 1000 + number
            first = tasks
            while written < least_bytes * (number + 1) / stages:
                event = ends[tasks % len(ends)]
                start = began + (tasks - first) * 10
                milliseconds = int(chance.lognormvariate(8, 0.5))
                event["Stage ID"] = stage
                info = event["Task Info"]
                info |= {"Task ID": tasks, "Index": tasks - first, "Partition ID": tasks - first}
                info |= {"Launch Time": start, "Finish Time": start + milliseconds}
                event["Task Metrics"]["Executor Run Time"] = milliseconds
                event["Task Metrics"]["Executor CPU Time"] = milliseconds * 800_000
                start_info = {**info, "Finish Time": 0, "Accumulables": []}
                begin = {"Event": "SparkListenerTaskStart", "Stage ID": stage}
                begin |= {"Stage Attempt ID": 0, "Task Info": start_info}
                for each in (begin, event):
                    written += file.write(json.dumps(each, separators=(",", ":")) + "\n")
                tasks += 1
            began += (tasks - first) * 10 + 10_000
            done = completed[number % len(completed)]
            done["Stage Info"] |= {
                "Stage ID": stage,
                "Number of Tasks": tasks - first,
                "Submission Time": began - (tasks - first) * 10 - 10_000,
                "Completion Time": began,
            }
            file.write(json.dumps(done, separators=(",", ":")) + "\n")
        if tail:
            file.write(json.dumps(json.loads(tail) | {"Timestamp": began + 1000}) + "\n")
    return tasks


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--stages", type=int, default=10)
    arguments = parser.parse_args()
    print(
        write_long_log(arguments.log, arguments.output, arguments.bytes, arguments.stages), "tasks"
    )
