"""The answers of AlterConfigs and IncrementalAlterConfigs, which have the same fields.

Kafka: AlterConfigsResponse, KafkaApis.processIncrementalAlterConfigsRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from odradek.protocol.codec.arrays.mapped import Zipped
from odradek.protocol.error_patterns import error_about

if TYPE_CHECKING:
    from odradek.controller.admin.config_admin import Outcome

R = TypeVar("R")


class Resource(Protocol):
    """What a request names."""

    resource_type: int
    resource_name: str


def answers(response_type: Callable[..., R], resources: Sequence[Resource], outcomes: Sequence[Outcome]) -> Sequence[R]:
    """The answer for each resource, in the order of the request."""

    def answer(resource: Resource, outcome: Outcome) -> R:
        error = None if outcome is None else error_about(resource.resource_name, outcome)
        return response_type(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_code=0 if error is None else error.code,
            error_message=None if error is None else error.specific_message,
        )

    return Zipped(answer, resources, outcomes)
