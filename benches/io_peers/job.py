"""Run a job of Tonnage's core in its own process: ``job.py NAME < config.json``."""

import json
import sys

from tonnage.base import core

print(json.dumps(core.run(sys.argv[1], json.load(sys.stdin))))
