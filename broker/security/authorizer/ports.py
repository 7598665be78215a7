"""The port through which handlers ask whether a request is allowed.

A handler asks for each resource that the request names. Without an authorizer (`Services.authorizer` is None)
everything is allowed; `broker/apis/authorization.py` has the questions that handlers ask.

Kafka: Authorizer, Action, AuthorizableRequestContext, AclCreateResult, AclDeleteResult.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.controller.model.acls import AclOperation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.controller.model.acls import AclBinding, AclBindingFilter
    from odradek.controller.model.broker_info import SecurityProtocol
    from odradek.protocol.errors import KafkaError


class AuthorizableRequestContext(NamedTuple):
    """What an authorizer may know of a request."""

    principal: str
    """`User:name`"""
    client_host: str
    """The address of the client, as text."""
    listener_name: str
    security_protocol: SecurityProtocol
    request_type: int
    """The API key."""
    request_version: int
    client_id: str
    correlation_id: int


class Action(NamedTuple):
    """One operation on one resource."""

    operation: AclOperation
    resource_type: ResourceType
    resource_name: str
    resource_reference_count: int = 1
    """How often the request names the resource."""
    log_if_allowed: bool = True
    """False: if it is allowed, the audit log has a line at TRACE only, not at DEBUG."""
    log_if_denied: bool = True
    """False: if it is denied, the audit log has a line at TRACE only, not at INFO (filtered lists)."""


class AclCreateResult(NamedTuple):
    error: KafkaError | None


class AclDeleteResult(NamedTuple):
    """The result of one filter."""

    error: KafkaError | None
    deleted: tuple[tuple[AclBinding, KafkaError | None], ...] = ()
    """The bindings that matched, each with the error of its deletion."""


class Authorizer(Protocol):
    """Decisions are made from memory, at once; only changes of ACLs wait for what stores them.

    A custom authorizer implements the abstract methods (docs/authorizers.md).
    """

    def configure(self, configs: Mapping[str, str], /) -> None:
        """Called once, before the broker accepts clients. `configs` are the broker's settings as texts."""

    @abstractmethod
    def authorize(self, ctx: AuthorizableRequestContext, actions: Sequence[Action], /) -> list[bool]:
        """Whether each action is allowed, in the order of the actions."""

    @abstractmethod
    def authorize_by_resource_type(
        self, ctx: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType, /
    ) -> bool:
        """Whether the operation is allowed on at least one resource of the type."""

    @abstractmethod
    async def create_acls(
        self, ctx: AuthorizableRequestContext, bindings: Sequence[AclBinding], /
    ) -> list[AclCreateResult]:
        """Store the bindings. The results are in their order."""

    @abstractmethod
    async def delete_acls(
        self, ctx: AuthorizableRequestContext, filters: Sequence[AclBindingFilter], /
    ) -> list[AclDeleteResult]:
        """Delete what each filter matches. The results are in the order of the filters."""

    @abstractmethod
    def acls(self, acl_filter: AclBindingFilter, /) -> Iterable[AclBinding | None]:
        """The bindings that match, as they are stored now. A generator may look for each when it is asked for, and
        give None where it has found nothing for some time: other work is done then.
        """

    @property
    def acl_count(self) -> int:
        """Stored bindings; -1 if unknown."""
        return -1

    def close(self) -> None:
        """Called once when the broker stops."""
