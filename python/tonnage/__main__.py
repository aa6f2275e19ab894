"""``python -m tonnage``: the command."""

from tonnage.cli.main import main

main()
