"""The labels of a sample, as text."""

from __future__ import annotations

Labels = str
"""`topic="t",partition="0"`; empty for none."""


def labelled(**values: object) -> Labels:
    """Labels as text, in the order of the arguments. An underscore at the end of a name is left out."""
    return ",".join(f'{name.rstrip("_")}="{escaped(str(value))}"' for name, value in values.items())


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
