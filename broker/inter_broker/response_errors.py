"""All error codes of a response, however deep they lie. Kafka: AbstractResponse.errorCounts."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.protocol.codec.schema import Struct


def error_codes(response: Struct) -> Iterator[int]:
    """One for each `error_code` in the response, 0 where there is none."""
    for field in response.FIELDS:
        value = getattr(response, field.name)
        if field.name == "error_code":
            yield value
        elif isinstance(value, list):
            for element in value:
                if isinstance(element, Struct):
                    yield from error_codes(element)
