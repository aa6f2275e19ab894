"""The `tonnage` command, as installed next to the Python that runs the tests."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tonnage:
    """The command under test."""

    path: Path = Path(sys.executable).parent / "tonnage"

    def run(
        self,
        *args: str | os.PathLike[str],
        check: bool = False,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 240,
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end; `env` adds to the environment, `check` fails with what it said."""
        done = subprocess.run(
            [self.path, *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=cwd,
            env=os.environ | dict(env or {}),
            timeout=timeout,
        )
        if check and done.returncode != 0:
            called = " ".join(["tonnage", *map(str, args)])
            raise AssertionError(
                f"{called} ended with {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done
