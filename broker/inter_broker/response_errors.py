"""All error codes of a response, at any depth.

Kafka: AbstractResponse.errorCounts.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.protocol.codec.schema import Struct


def error_codes(response: Struct) -> Iterator[int]:
    """The value of each `error_code` field in the response, 0 for no error."""
    for field in response.FIELDS:
        value = getattr(response, field.name)
        if field.name == "error_code":
            yield value
        elif isinstance(value, list):
            for element in value:
                if isinstance(element, Struct):
                    yield from error_codes(element)
