"""Authorizers, principal builders and callback handlers of Apache's tests in Python.

`Classes.java` puts them in the place of the classes in Scala, whose names the docstrings have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from odradek.broker.security.authorizer.ports import (
    AclCreateResult,
    AclDeleteResult,
    Action,
    AuthorizableRequestContext,
    Authorizer,
)
from odradek.broker.security.principal_builder import AuthenticationContext, KafkaPrincipalBuilder
from odradek.broker.security.sasl.callback_handlers import PlainCallbackHandler
from odradek.controller.model.acls import AclBinding, AclBindingFilter, AclOperation, ResourceType
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.protocol.api import ApiKey

ANONYMOUS = "User:ANONYMOUS"
UNAUTHORIZED = "User:Unauthorized"


class ByListener(KafkaPrincipalBuilder):
    """AbstractAuthorizerIntegrationTest.PrincipalBuilder."""

    type = "User"

    def build(self, context: AuthenticationContext, /) -> str:
        return f"{self.type}:{ {'BROKER': 'broker', 'CLIENT': 'client'}[context.listener_name] }"


class GroupByListener(ByListener):
    """GroupAuthorizerIntegrationTest.GroupPrincipalBuilder."""

    type = "Group"


class Client(KafkaPrincipalBuilder):
    """PlaintextEndToEndAuthorizationTest.TestClientPrincipalBuilder."""

    def build(self, context: AuthenticationContext, /) -> str:
        return "User:client" if _is_plaintext(context) and context.client_address else ANONYMOUS


class Server(KafkaPrincipalBuilder):
    """PlaintextEndToEndAuthorizationTest.TestServerPrincipalBuilder."""

    def build(self, context: AuthenticationContext, /) -> str:
        return "User:server" if _is_plaintext(context) else ANONYMOUS


def _is_plaintext(context: AuthenticationContext) -> bool:
    return context.security_protocol is SecurityProtocol.PLAINTEXT


def _organization_and_name(context: AuthenticationContext) -> tuple[str, str] | None:
    """What the certificate has after "O=A " and after "CN="."""
    if context.peer_name is None:
        raise ValueError("the client has shown no certificate")
    match = re.fullmatch("O=A (.*?),CN=(.*?)", context.peer_name)
    return None if match is None else (match[1], match[2])


class SslEndToEnd(KafkaPrincipalBuilder):
    """SslEndToEndAuthorizationTest.TestPrincipalBuilder."""

    def build(self, context: AuthenticationContext, /) -> str:
        names = _organization_and_name(context)
        if names is None:
            return ANONYMOUS
        is_server = names[0] == "server" or names[1] == "super-user"
        return "User:server" if is_server else f"User:{context.peer_name}"


class SslAdmin(KafkaPrincipalBuilder):
    """SslAdminIntegrationTest.TestPrincipalBuilder."""

    def build(self, context: AuthenticationContext, /) -> str:
        names = None if _is_plaintext(context) else _organization_and_name(context)
        if names is None:
            return ANONYMOUS
        if names[0] == "server" or names[1] == "super-user":
            return "User:server"
        return "User:client" if names[1] == "client" else ANONYMOUS


class PlainSslEndToEnd(KafkaPrincipalBuilder):
    """SaslPlainSslEndToEndAuthorizationTest.TestPrincipalBuilder."""

    users: ClassVar = {"plain-admin": "User:admin", "plain-user": "User:user"}

    def build(self, context: AuthenticationContext, /) -> str:
        if context.peer_name is None or not context.peer_name.endswith("CN=localhost"):
            raise AssertionError(f"Unexpected SSL principal {context.peer_name}")
        return self.users.get(context.authorization_id or "", ANONYMOUS)


class PlainSslPasswords(PlainCallbackHandler):
    """SaslPlainSslEndToEndAuthorizationTest.TestServerCallbackHandler."""

    passwords: ClassVar = {
        "plain-user": "user1-password",
        "plain-user2": "plain-user2-secret",
        "plain-admin": "broker-password",
    }

    def verify(self, user: str, password: str, /) -> bool:
        return self.passwords[user] == password


class GroupEndToEnd(KafkaPrincipalBuilder):
    """GroupEndToEndAuthorizationTest.GroupPrincipalBuilder."""

    def build(self, context: AuthenticationContext, /) -> str:
        if context.authorization_id is None:
            return ANONYMOUS
        return "Group:testGroup" if context.authorization_id == "scram-user" else f"Group:{context.authorization_id}"


class Anonymous(KafkaPrincipalBuilder):
    """AlterCredentialsTest.TestPrincipalBuilderReturningAuthorized, and that of DescribeCredentialsTest."""

    def build(self, context: AuthenticationContext, /) -> str:
        return ANONYMOUS


class Unauthorized(KafkaPrincipalBuilder):
    """AlterCredentialsTest.TestPrincipalBuilderReturningUnauthorized, and that of DescribeCredentialsTest."""

    def build(self, context: AuthenticationContext, /) -> str:
        return UNAUTHORIZED


class AllButOneApi(Authorizer):
    """Refuses one API to one user. No test of these asks it for ACLs."""

    api: ApiKey

    def authorize(self, ctx: AuthorizableRequestContext, actions: Sequence[Action], /) -> list[bool]:
        is_refused = ctx.request_type == self.api and ctx.principal == UNAUTHORIZED
        return [not is_refused for _ in actions]

    def authorize_by_resource_type(
        self, ctx: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType, /
    ) -> bool:
        raise NotImplementedError

    async def create_acls(
        self, ctx: AuthorizableRequestContext, bindings: Sequence[AclBinding], /
    ) -> list[AclCreateResult]:
        raise NotImplementedError

    async def delete_acls(
        self, ctx: AuthorizableRequestContext, filters: Sequence[AclBindingFilter], /
    ) -> list[AclDeleteResult]:
        raise NotImplementedError

    def acls(self, acl_filter: AclBindingFilter, /) -> list[AclBinding]:
        raise NotImplementedError


class AlterCredentials(AllButOneApi):
    """AlterCredentialsTest.TestAuthorizer."""

    api = ApiKey.ALTER_USER_SCRAM_CREDENTIALS


class DescribeCredentials(AllButOneApi):
    """DescribeCredentialsTest.TestAuthorizer."""

    api = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
