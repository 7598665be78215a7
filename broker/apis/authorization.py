"""The questions that handlers ask of the authorizer. Without one everything is allowed, at the cost of one test.

Requests that the broker sends to itself in its own process are allowed, too, without a question: they never come from a
socket. Requests of other brokers are asked about like those of clients: the principal of their connection must be a
super user or have the operation CLUSTER_ACTION.

Kafka: AuthHelper, RequestHandlerHelper.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from odradek.broker.security.authorizer.ports import Action, AuthorizableRequestContext
from odradek.controller.model.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from odradek.protocol.api import API
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Container, Generator, Iterable

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.security.authorizer.ports import Authorizer

ACTIONS_A_STEP: Final = 64
"""Resources that an authorizer is asked for in one call: with 2 µs for a decision, far below a slice of the loop."""

EVERY_OPERATION: Final = {kind: sum(1 << code for code in codes) for kind, codes in SUPPORTED_OPERATIONS.items()}
"""The bit field of all of them: bit n stands for the AclOperation with code n."""


REFUSAL: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error code for a resource of the type with which the client may not do what it wants."""


class _Everything:
    """Contains every name."""

    def __contains__(self, name: object) -> bool:
        return True


EVERYTHING: Final = _Everything()


def _authorizer(broker: Services, ctx: RequestContext) -> Authorizer | None:
    """None if everything is allowed: there is no authorizer, or the broker sends the request to itself."""
    return None if broker.authorizer is None or ctx.connection.is_own_broker else broker.authorizer


def configured_authorizer(broker: Services, message: str) -> Authorizer:
    """The authorizer whose ACLs a client asks for. Raises: KafkaError SECURITY_DISABLED."""
    if broker.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, message)
    return broker.authorizer


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
        name, connection = API[ctx.header.api_key].name, ctx.connection
        if ctx.times is not None:
            ctx.times.is_refused_to_client = True
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"Request {name} of {connection.principal} from {connection.client_host} is not authorized.",
        )


def require(
    broker: Services,
    ctx: RequestContext,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
) -> None:
    """Raises: KafkaError with the code for that type of resource, which refuses the request as a whole."""
    if broker.authorizer is not None and not authorize(broker, ctx, operation, resource_type, name):
        raise KafkaError(REFUSAL[resource_type])


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
    names: Iterable[str],
    *,
    log_if_allowed: bool = True,
    log_if_denied: bool = True,
) -> Generator[None, None, Container[str]]:
    """The names of the resources with which the client may do that, in steps. Without an authorizer it contains every
    name. A resource that is named twice is asked once, with the number of its mentions.

    Kafka: AuthHelper.filterByAuthorized, AuthHelper.partitionSeqByAuthorized.
    """
    authorizer = _authorizer(broker, ctx)
    if authorizer is None:
        return EVERYTHING
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        yield
    context, left = request_context(ctx), iter(counts.items())
    found: set[str] = set()
    while some := list(islice(left, ACTIONS_A_STEP)):
        actions = [Action(operation, resource_type, name, count, log_if_allowed, log_if_denied) for name, count in some]
        allowed = authorizer.authorize(context, actions)
        found.update(name for (name, _), is_allowed in zip(some, allowed, strict=True) if is_allowed)
        yield
    return found


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


def cluster_operations(broker: Services, ctx: RequestContext) -> int:
    """The bit field for the cluster, 0 for a client that may not describe it.

    Kafka: AuthHelper.computeDescribeClusterResponse.
    """
    if authorize(broker, ctx, AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return authorized_operations(broker, ctx, ResourceType.CLUSTER, CLUSTER_NAME)
    return 0
