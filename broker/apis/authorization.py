"""The questions that handlers ask of the authorizer. Without one everything is allowed, at the cost of one test.

Requests that the broker sends to itself in its own process are allowed, too, without a question: they never come from a
socket. Requests of other brokers are asked about like those of clients: the principal of their connection must be a
super user or have the operation CLUSTER_ACTION.

Kafka: AuthHelper, RequestHandlerHelper.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.broker.security.authorizer.ports import Action, AuthorizableRequestContext
from odradek.controller.model.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext
    from odradek.broker.security.authorizer.ports import Authorizer

T = TypeVar("T")

EVERY_OPERATION: Final = {kind: sum(1 << code for code in codes) for kind, codes in SUPPORTED_OPERATIONS.items()}
"""The bit field of all of them: bit n stands for the AclOperation with code n."""


def _authorizer(broker: Services, ctx: RequestContext) -> Authorizer | None:
    """The authorizer to ask; None if everything is allowed."""
    return None if broker.authorizer is None or ctx.connection.is_own_broker else broker.authorizer


def request_context(ctx: RequestContext) -> AuthorizableRequestContext:
    """What an authorizer may know of a request."""
    connection, header = ctx.connection, ctx.header
    return AuthorizableRequestContext(
        connection.principal,
        connection.client_host,
        connection.listener_name,
        connection.security_protocol,
        header.api_key,
        header.api_version,
        header.client_id or "",
        header.correlation_id,
    )


def authorize(
    broker: Services,
    ctx: RequestContext,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
    *,
    log_if_allowed: bool = True,
    log_if_denied: bool = True,
    reference_count: int = 1,
) -> bool:
    """Whether the client may do that. Kafka: AuthHelper.authorize."""
    authorizer = _authorizer(broker, ctx)
    if authorizer is None:
        return True
    action = Action(operation, resource_type, name, reference_count, log_if_allowed, log_if_denied)
    return authorizer.authorize(request_context(ctx), (action,))[0]


def authorize_cluster(broker: Services, ctx: RequestContext, operation: AclOperation) -> None:
    """Raises: KafkaError CLUSTER_AUTHORIZATION_FAILED. Kafka: AuthHelper.authorizeClusterOperation."""
    if not authorize(broker, ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def authorize_by_resource_type(
    broker: Services, ctx: RequestContext, operation: AclOperation, resource_type: ResourceType
) -> bool:
    """Whether the client may do that with some resource of the type. Kafka: AuthHelper.authorizeByResourceType."""
    authorizer = _authorizer(broker, ctx)
    return authorizer is None or authorizer.authorize_by_resource_type(request_context(ctx), operation, resource_type)


def filter_by_authorized(
    broker: Services,
    ctx: RequestContext,
    operation: AclOperation,
    resource_type: ResourceType,
    resources: Iterable[T],
    name: Callable[[T], str],
    *,
    log_if_allowed: bool = True,
    log_if_denied: bool = True,
) -> set[str]:
    """The names of the resources with which the client may do that, each asked once.

    Kafka: AuthHelper.filterByAuthorized.
    """
    counts = Counter(map(name, resources))
    authorizer = _authorizer(broker, ctx)
    if authorizer is None:
        return set(counts)
    actions = [
        Action(operation, resource_type, resource, count, log_if_allowed, log_if_denied)
        for resource, count in counts.items()
    ]
    allowed = authorizer.authorize(request_context(ctx), actions)
    return {resource for resource, is_allowed in zip(counts, allowed, strict=True) if is_allowed}


def authorized_operations(broker: Services, ctx: RequestContext, resource_type: ResourceType, name: str) -> int:
    """The bit field of the operations that the client may do with a resource (KIP-430): bit n for code n.

    Kafka: AuthHelper.authorizedOperations.
    """
    authorizer = _authorizer(broker, ctx)
    if authorizer is None:
        return EVERY_OPERATION[resource_type]
    actions = [
        Action(operation, resource_type, name, log_if_allowed=False, log_if_denied=False)
        for operation in SUPPORTED_OPERATIONS[resource_type]
    ]
    allowed = authorizer.authorize(request_context(ctx), actions)
    return sum(1 << action.operation for action, is_allowed in zip(actions, allowed, strict=True) if is_allowed)
