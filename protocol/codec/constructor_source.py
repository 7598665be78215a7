"""Generates the constructors of message classes, and the statements that give a new instance its defaults.

A constructor is compiled when the first instance of its class is built. It takes every field as a keyword and creates
nested structs without calling their constructors: about six times faster than a loop over the fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from odradek.protocol.codec.field import FRESH, Field, Kind, StructType


def constructor_lines(fields: tuple[Field, ...], target: str, names: dict[str, object]) -> list[str]:
    """Statements that give `target` the default of every field; objects they need are put into `names`."""
    lines = [f"{target}.unknown_tagged_fields = None"]
    for field in fields:
        if field.kind is Kind.STRUCT and field.default is FRESH:
            struct = cast("StructType", field.element)
            names[struct.__name__] = struct
            nested = f"{target.rpartition('.')[2]}_{field.name}"
            lines.append(f"{nested} = new({struct.__name__})")
            lines += constructor_lines(struct.FIELDS, nested, names)
            lines.append(f"{target}.{field.name} = {nested}")
        else:
            lines.append(f"{target}.{field.name} = {default_source(field)}")
    return lines


def default_source(field: Field) -> str:
    """Source text of the default of a field that is not a struct with defaults of its own."""
    if field.default is FRESH:
        return "[]"
    return repr(field.default)


def compile_constructor(struct: StructType) -> None:
    """Give a class its `__init__`."""
    names: dict[str, object] = {"new": object.__new__, "fresh": FRESH}
    parameters, body = [], ["self.unknown_tagged_fields = None"]
    for field in struct.FIELDS:
        name = field.name
        if field.default is FRESH:
            parameters.append(f"{name}=fresh")
            body.append(f"if {name} is fresh:")
            if field.kind is Kind.ARRAY:
                body.append(f"    {name} = []")
            else:
                nested = cast("StructType", field.element)
                names[nested.__name__] = nested
                body.append(f"    {name} = new({nested.__name__})")
                body += ["    " + line for line in constructor_lines(nested.FIELDS, name, names)]
        else:
            parameters.append(f"{name}={default_source(field)}")
        body.append(f"self.{name} = {name}")
    signature = f"self, *, {', '.join(parameters)}" if parameters else "self"
    source = f"def __init__({signature}):\n    " + "\n    ".join(body) + "\n"
    exec(compile(source, f"<constructor of {struct.__name__}>", "exec"), names)
    constructor = cast("Callable[..., None]", names["__init__"])
    constructor.__qualname__ = f"{struct.__qualname__}.__init__"
    type.__setattr__(struct, "__init__", constructor)
