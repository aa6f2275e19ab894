"""``python -m tonnage``: the command."""

from tonnage.cli import main

main()
