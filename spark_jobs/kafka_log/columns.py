"""The columns of the data source: those of Spark's kafka source, then facts of the batch."""

from __future__ import annotations

from typing import Final

_KAFKA: Final = (
    ("key", "binary"),
    ("value", "binary"),
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "long"),
    ("timestamp", "timestamp"),
    ("timestampType", "int"),
)
_HEADERS: Final = ("headers", "array<struct<key: string, value: binary>>")
_BATCH: Final = (
    ("leaderEpoch", "int"),
    ("producerId", "long"),
    ("producerEpoch", "short"),
    ("sequence", "int"),
    ("compression", "string"),
    ("batchSize", "int"),
    ("batchOffset", "long"),
    ("recordSize", "int"),
    ("isTransactional", "boolean"),
    ("isControl", "boolean"),
    ("isAborted", "boolean"),
    ("segment", "string"),
    ("logDir", "string"),
)


def _columns(include_headers: bool) -> tuple[tuple[str, str], ...]:
    """Names and Spark types, in order."""
    return (*_KAFKA, _HEADERS, *_BATCH) if include_headers else (*_KAFKA, *_BATCH)


def column_names(include_headers: bool) -> list[str]:
    return [name for name, _ in _columns(include_headers)]


def ddl(include_headers: bool) -> str:
    """The schema as Spark reads it."""
    return ", ".join(f"{name} {kind}" for name, kind in _columns(include_headers))
