"""The answers of AlterConfigs and IncrementalAlterConfigs, which have the same fields.

Kafka: AlterConfigsResponse, KafkaApis.processIncrementalAlterConfigsRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from odradek.controller.loop_turns import in_turns
from odradek.protocol.made_once import made_once

if TYPE_CHECKING:
    from odradek.protocol.errors import KafkaError

R = TypeVar("R")


class Resource(Protocol):
    """What a request names."""

    resource_type: int
    resource_name: str


async def answers(
    response_type: Callable[..., R], resources: Sequence[Resource], errors: Sequence[KafkaError | None]
) -> list[R]:
    """The answer for each resource, in the order of the request. `errors`: of each, None if it was altered."""

    def answer(resource_type: int, resource_name: str, error: KafkaError | None) -> R:
        return response_type(
            resource_type=resource_type,
            resource_name=resource_name,
            error_code=0 if error is None else error.code,
            error_message=None if error is None else error.specific_message,
        )

    make = made_once(answer, len(errors))
    return [
        make(resource.resource_type, resource.resource_name, error)
        async for resource, error in in_turns(zip(resources, errors, strict=True))
    ]
