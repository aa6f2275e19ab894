"""The ``tonnage`` command."""
