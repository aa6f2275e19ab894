"""Preload what launches need, in the process that they are forked from.

That is imports and botocore's model of EC2: reading the model would take most of a launch's time.
"""

import os
from typing import Any

import botocore.loaders

from support.aws import launches as launches
from tonnage.cli.provision import launch as launch
from tonnage.provision.aws import ec2

_load: Any = botocore.loaders.JSONFileLoader.load_file
_loaded: dict[str, Any] = {}


def _load_once(self: Any, file_path: str, *more: Any) -> Any:
    if file_path not in _loaded:
        _loaded[file_path] = _load(self, file_path, *more)
    return _loaded[file_path]


botocore.loaders.JSONFileLoader.load_file = _load_once
os.environ |= {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}
ec2._connect("us-east-1")
for _name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
    del os.environ[_name]
