"""A job of Tonnage's core in a process of its own: ``job.py NAME < config.json``."""

import json
import sys

from tonnage import engine

print(json.dumps(engine.run(sys.argv[1], json.load(sys.stdin))))
