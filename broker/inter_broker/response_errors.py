"""All error codes of a response, at any depth.

Kafka: AbstractResponse.errorCounts.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.protocol.codec.schema import Kind, Struct


def error_codes(response: Struct) -> Iterator[int]:
    """The value of each `error_code` field in the response, 0 for no error."""
    for field in response.FIELDS:
        value = getattr(response, field.name)
        if field.name == "error_code":
            yield value
        elif field.kind is Kind.ARRAY and isinstance(field.element, type):
            for element in value or ():
                yield from error_codes(element)
