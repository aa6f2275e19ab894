"""Change this machine and undo it reliably; read the kernel's counters.

Changes are commands, and the undo journal records how to undo each before it is made. As with the
core's jobs, `UsageError` is raised before anything is changed, `RunError` after.
"""

from tonnage.base.core import RunError, UsageError
from tonnage.base.system.undo_journal import (
    Change,
    Command,
    Execute,
    Undo,
    UndoJournal,
    locked_room,
    open_journal,
)

__all__ = [
    "Change",
    "Command",
    "Execute",
    "RunError",
    "Undo",
    "UndoJournal",
    "UsageError",
    "locked_room",
    "open_journal",
]
