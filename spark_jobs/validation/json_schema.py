"""JSON Schemas: reading and checking one before Spark starts, and validating records with it on executors.

The draft is that of the schema's `$schema`: 3, 4, 6, 7, 2019-09 or 2020-12; without one it is 2020-12. A `$ref` must
point into the schema itself or to one of the drafts: nothing is fetched from a network. `format` is only an
annotation, as the newer drafts have it, unless formats are asserted.

Numbers are ints of any size (Python reads at most 4,300 digits) and doubles: `1e999` is infinity, which is a number and
above every maximum. A keyword that cannot compute with a value makes the record bad, as a broken keyword does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from spark_jobs.common.job import JobError

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"
MAX_KIND_CHARS = 200
MAX_TEXT_CHARS = 500


class Verdict(NamedTuple):
    """Why a record is bad."""

    kind: str
    """The part that is counted: it has no value of a record."""
    text: str
    """The whole reason, shortened to `MAX_TEXT_CHARS`."""


NULL_VALUE = Verdict("value is null", "value is null")
NULL_KEY = Verdict("key is null", "key is null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What makes a record good. The schemas are their texts, so that tasks on executors can compile them."""

    value_schema: str
    key_schema: str | None = None
    allow_null_values: bool = False
    assert_formats: bool = False

    def verdict(self, key: bytes | None, value: bytes | None) -> Verdict | None:
        """Why the record is bad; None for a good one."""
        found = self._part("value", value, self.value_schema) if value is not None else self._null_value()
        if found is None and self.key_schema is not None:
            found = NULL_KEY if key is None else self._part("key", key, self.key_schema)
        return found

    def _null_value(self) -> Verdict | None:
        return None if self.allow_null_values else NULL_VALUE

    def _part(self, part: str, content: bytes, schema: str) -> Verdict | None:
        try:
            instance = json.loads(content.decode(), parse_constant=_refuse_constant)
        except UnicodeDecodeError as error:
            return _verdict(f"{part} is not UTF-8", f"{part} is not UTF-8: {error.reason} at byte {error.start}")
        except RecursionError:
            return _verdict(f"{part} is not JSON", f"{part} is not JSON that can be read: it is nested too deeply")
        except ValueError as error:
            return _verdict(f"{part} is not JSON", f"{part} is not JSON: {error}")
        validator = compiled(schema, assert_formats=self.assert_formats)
        try:
            found = next(validator.iter_errors(instance), None)
        except RecursionError:
            return _verdict(f"{part} is nested too deeply", f"{part} is nested too deeply to be validated")
        except (ArithmeticError, ValueError) as error:  # of the value; a schema that cannot be followed raises others
            return _verdict(f"{part} cannot be validated", f"{part} cannot be validated: {error}")
        return None if found is None else _mismatch(part, found)


def _refuse_constant(name: str) -> object:
    """`NaN` and `Infinity`, which Python's parser takes and JSON does not have."""
    raise ValueError(f"{name} is no JSON value")


def _mismatch(part: str, error: ValidationError) -> Verdict:
    keyword = "/".join(map(str, error.absolute_schema_path))
    what = f": {error.message}" if error.validator == "required" else ""  # the keyword does not say which property
    return _verdict(
        f"{part} breaks /{keyword}{what}", f"{part} breaks /{keyword} at {error.json_path}: {error.message}"
    )


def _verdict(kind: str, text: str) -> Verdict:
    # A name in JSON may hold half of a surrogate pair, which UTF-8 does not have.
    encodable = text.encode(errors="backslashreplace").decode()
    return Verdict(_shortened(kind, MAX_KIND_CHARS), _shortened(encodable, MAX_TEXT_CHARS))


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


@lru_cache(maxsize=8)
def compiled(schema: str, *, assert_formats: bool = False) -> Validator:
    """The validator of a schema's text: made once in each worker process."""
    from jsonschema.validators import extend, validator_for
    from jsonschema_specifications import REGISTRY

    document = json.loads(schema)
    dialect = dialect_of(document)
    draft = validator_for({"$schema": dialect}, default=cast("type[Validator]", None))
    if draft is None:
        raise JobError(f"$schema is {dialect}, which is none of the drafts 3, 4, 6, 7, 2019-09 and 2020-12")
    checker = draft.FORMAT_CHECKER if assert_formats else None
    draft = cast("type[Validator]", extend(draft, {"uniqueItems": _unique_items}))  # type: ignore[no-untyped-call]
    if isinstance(document, dict):
        document.pop("$schema", None)  # at a `$ref` to the root, the library would take its own class for this draft
    validator: Validator = draft(document, registry=REGISTRY, format_checker=checker)
    return validator


def _unique_items(validator: Validator, is_wanted: object, instance: object, _: object) -> Iterator[ValidationError]:
    """The keyword `uniqueItems`. The library compares each item with all others where they cannot be sorted: one record
    of 1 MB, an array of objects, would hold a task for hours.
    """
    from jsonschema.exceptions import ValidationError

    if not is_wanted or not isinstance(instance, list):
        return
    if len(instance) != len(set(map(_canonical, instance))):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _canonical(value: object) -> str:
    """The same text for values that JSON Schema calls equal: 1 and 1.0, objects in any order. A text, because senders
    can make numbers whose hashes are all the same.
    """
    match value:
        case list():
            return f"[{','.join(map(_canonical, value))}]"
        case dict():
            return f"{{{','.join(f'{json.dumps(name)}:{_canonical(value[name])}' for name in sorted(value))}}}"
        case str():
            return json.dumps(value)
        case float() if value.is_integer():
            return repr(int(value))
        case _:
            return repr(value)


def read_schema(path: str, option: str) -> str:
    """The text of a schema in a file, checked. Raises: JobError."""
    try:
        import jsonschema
    except ImportError:
        raise JobError(
            "validate_records needs jsonschema on the driver and on each executor: pip install jsonschema"
        ) from None
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise JobError(f"{option}: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise JobError(f"{option}: {path} is not UTF-8") from None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise JobError(f"{option}: {path} is not JSON: {error}") from None
    if not isinstance(document, dict | bool):
        raise JobError(f"{option}: {path} is no JSON Schema: it is neither an object nor true or false")
    try:
        compiled(text).check_schema(cast("dict[str, object]", document))
    except jsonschema.SchemaError as error:
        raise JobError(f"{option}: {path} is no JSON Schema: {error.message} at {error.json_path}") from None
    except JobError as error:
        raise JobError(f"{option}: {path}: {error}") from None
    for reference in dangling_references(document):
        raise JobError(f"{option}: {path}: the {reference} is not in the schema, and nothing is fetched")
    return text


def dangling_references(document: Mapping[str, object] | bool) -> Iterator[str]:
    """The references of a schema that point to nothing that is there, each with its keyword."""
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import specification_with

    specification = specification_with(dialect_of(document))
    resource = specification.create_resource(document)
    uri = resource.id() or ""
    registry = REGISTRY.with_resource(uri, resource).crawl()
    waiting = [(resource, registry.resolver(uri))]
    while waiting:
        resource, resolver = waiting.pop()
        contents = resource.contents
        for keyword in ("$ref", "$dynamicRef"):
            reference = contents.get(keyword) if isinstance(contents, dict) else None
            if not isinstance(reference, str):
                continue
            try:
                resolver.lookup(reference)
            except Unresolvable:
                yield f"{keyword} {reference}"
        waiting += [(below, resolver.in_subresource(below)) for below in resource.subresources()]


def dialect_of(document: Mapping[str, object] | bool) -> str:
    """The URI of a schema's draft."""
    found = document.get("$schema", DEFAULT_DRAFT) if isinstance(document, dict) else DEFAULT_DRAFT
    return str(found).rstrip("#")
