"""Lines of some modules and of a page's scripts that did not run, so that nothing compares them."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from support.browser.chromium import Page


class ModuleLines:
    """The lines of functions of some modules that have not run yet."""

    def __init__(self, modules: Iterable[ModuleType], skipped: Sequence[str] = ()) -> None:
        self._skipped = skipped
        self._ran: dict[str, set[int]] = {str(module.__file__): set() for module in modules}
        self._left: dict[CodeType, set[int]] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the lines that run inside."""
        before = sys.gettrace()
        sys.settrace(self._on_call)
        try:
            yield
        finally:
            sys.settrace(before)

    def missed(self) -> list[str]:
        """``file:line: text`` of each line that did not run."""
        found = []
        for file, ran in self._ran.items():
            source = Path(file).read_text()
            text = source.splitlines()
            lines = sorted(_function_lines(compile(source, file, "exec"), self._skipped) - ran)
            found += [f"{Path(file).name}:{line}: {text[line - 1].strip()}" for line in lines]
        return found

    def _on_call(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        ran = self._ran.get(frame.f_code.co_filename)
        if ran is None:
            return None
        left = self._left.get(frame.f_code)
        if left is None:
            left = {line for _, line in dis.findlinestarts(frame.f_code) if line} - ran
            self._left[frame.f_code] = left

        def on_line(frame: FrameType, _event: str, _arg: Any) -> Any:
            ran.add(frame.f_lineno)
            left.discard(frame.f_lineno)
            return on_line if left else None

        # Tracing is slow: calls of a function whose lines all ran are not traced.
        return on_line if left else None


def _function_lines(code: CodeType, skipped: Sequence[str], inside: bool = False) -> set[int]:
    """Lines of functions and methods; those of modules and class bodies run when imported."""
    is_function = inside or bool(code.co_flags & 0x2)  # CO_NEWLOCALS
    lines = {line for _, line in dis.findlinestarts(code) if line} if is_function else set()
    lines.discard(code.co_firstlineno)
    for each in code.co_consts:
        if isinstance(each, CodeType) and each.co_name not in skipped:
            lines |= _function_lines(each, skipped, is_function)
    return lines


class ScriptLines:
    """The lines of a page's scripts that have not run yet, over several pages."""

    def __init__(self, scripts: Mapping[str, str]) -> None:
        self._scripts = scripts
        self._ran = {name: bytearray(len(text)) for name, text in scripts.items()}

    @contextmanager
    def recording(self, page: Page) -> Iterator[None]:
        """Record the lines that run inside; load the page there, too."""
        session = page.inner.context.new_cdp_session(page.inner)
        session.send("Profiler.enable")
        session.send("Debugger.enable")
        session.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True})
        yield
        for each in session.send("Profiler.takePreciseCoverage")["result"]:
            source = session.send("Debugger.getScriptSource", {"scriptId": each["scriptId"]})
            self._add(source["scriptSource"], each["functions"])
        session.detach()

    def missed(self) -> list[str]:
        """``script:line: text`` of each line with a part that did not run on any page."""
        found = []
        for name, text in self._scripts.items():
            place = 0
            for number, line in enumerate(text.splitlines(keepends=True), start=1):
                code = line.strip()
                begin = place + len(line) - len(line.lstrip())
                place += len(line)
                if not code.strip("{}()[]; ,") or code.startswith(("//", "/*", "*")):
                    continue
                if not all(self._ran[name][begin : begin + len(code)]):
                    found.append(f"{name}.js:{number}: {code}")
        return found

    def _add(self, source: str, functions: list[dict[str, Any]]) -> None:
        if not all(text in source for text in self._scripts.values()):
            return
        ran = bytearray(b"\x01" * len(source))
        # Inner ranges come after those around them, and override them.
        for function in functions:
            for part in function["ranges"]:
                begin, end = part["startOffset"], min(part["endOffset"], len(source))
                ran[begin:end] = bytes([part["count"] > 0]) * (end - begin)
        for name, text in self._scripts.items():
            begin = source.index(text)
            known = self._ran[name]
            known[:] = bytes(map(max, known, ran[begin : begin + len(text)]))
