"""Quotas and SCRAM users of a cluster for tests of commands."""

from __future__ import annotations

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import alter_client_quotas, describe_client_quotas
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ResponseEntryData,
)
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntryData,
    ValueData,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from tests.support.clusters.admin_cluster import AdminCluster

EXACT, DEFAULT, SPECIFIED = 0, 1, 2


class AdminQuotas:
    """Stores quotas; no request fails unless the test says so."""

    def __init__(self, cluster: AdminCluster) -> None:
        self.entries: list[tuple[dict[str, str | None], dict[str, float]]] = []
        self.altered: list[tuple[dict[str, str | None], dict[str, float | None]]] = []
        self.users: list[DescribeUserScramCredentialsResult] = []
        self.error = ErrorCode.NONE
        cluster.on(DescribeClientQuotasRequest, self._describe)
        cluster.on(AlterClientQuotasRequest, self._alter)
        cluster.on(DescribeUserScramCredentialsRequest, self._describe_users)
        cluster.on(AlterUserScramCredentialsRequest, self._alter_users)

    def has_user(self, user: str, mechanism: int = 1, error: ErrorCode = ErrorCode.NONE) -> None:
        infos = [CredentialInfo(mechanism=mechanism, iterations=8192)]
        self.users.append(
            DescribeUserScramCredentialsResult(user=user, error_code=error, error_message=None, credential_infos=infos)
        )

    def _describe(self, broker_id: int, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
        def matches(entity: dict[str, str | None]) -> bool:
            if request.strict and len(entity) != len(request.components):
                return False
            return all(
                wanted.entity_type in entity
                and (wanted.match_type == SPECIFIED or entity[wanted.entity_type] == wanted.match)
                for wanted in request.components
            )

        return DescribeClientQuotasResponse(
            error_message=None,
            entries=[
                EntryData(
                    entity=[
                        describe_client_quotas.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity.items()
                    ],
                    values=[ValueData(key=key, value=value) for key, value in values.items()],
                )
                for entity, values in self.entries
                if matches(entity)
            ],
        )

    def _alter(self, broker_id: int, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
        (entry,) = request.entries
        entity = {part.entity_type: part.entity_name for part in entry.entity}
        self.altered.append((entity, {op.key: None if op.remove else op.value for op in entry.ops}))
        parts = [alter_client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
        return AlterClientQuotasResponse(
            entries=[ResponseEntryData(error_code=self.error, error_message=None, entity=parts)]
        )

    def _describe_users(
        self, broker_id: int, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        wanted = None if request.users is None else {user.name for user in request.users}
        found = [user for user in self.users if wanted is None or user.user in wanted]
        return DescribeUserScramCredentialsResponse(error_message=None, results=found)

    def _alter_users(
        self, broker_id: int, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        names = [found.name for found in (*request.deletions, *request.upsertions)]
        results = [
            AlterUserScramCredentialsResult(user=name, error_code=self.error, error_message=None) for name in names
        ]
        return AlterUserScramCredentialsResponse(results=results)
