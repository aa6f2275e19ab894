"""Changes of this machine: how each is made, as commands, and undone whatever happens.

``journal`` writes down what undoes a change before it is made; ``files`` makes loop devices of
files, file systems and mounts, ``switch`` networks of namespaces, ``groups`` finds control groups.
Devices that are laid out, endpoints in namespaces and labs are made of these. What cannot be done
ends as the engine's jobs do: `UsageError` before anything is changed, `RunError` after.
"""

from tonnage.base.core import RunError, UsageError
from tonnage.base.system.undo_journal import Command, Execute, UndoJournal, Change, Undo, locked_room, open_journal

__all__ = [
    "Command",
    "Execute",
    "UndoJournal",
    "RunError",
    "Change",
    "Undo",
    "UsageError",
    "locked_room",
    "open_journal",
]
