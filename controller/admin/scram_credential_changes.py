"""AlterUserScramCredentials: changes of the SCRAM credentials of users in the metadata tree (KIP-554).

The controller alone writes them, and notifies all brokers through `/config/changes`. A user whose changes are not all
valid keeps its credentials. The client sends the password salted and hashed, so little is computed here.

Kafka: ZkAdminManager.alterUserScramCredentials.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.controller.admin.client_quota_changes import write_client_config
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.scram_mechanism import MAX_ITERATIONS, ScramMechanism
from odradek.controller.tree.metadata_tree import TreeError
from odradek.controller.znodes import znodes
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient

logger = logging.getLogger("odradek.controller")

_NO_USER: Final = KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_NO_MECHANISM: Final = KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
_TOO_MANY_ITERATIONS: Final = KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
_TOO_FEW_ITERATIONS: Final = KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_DUPLICATE: Final = KafkaError(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)
_NOT_FOUND: Final = KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
"""Values that are never raised: a request may be refused for 100,000 users, and an error of its own for each has 40 MB.
"""

_MECHANISMS: Final = {mechanism.code: mechanism for mechanism in ScramMechanism}


class Deletion(NamedTuple):
    user: str
    mechanism: int
    """Kafka's code; any number may come."""


class Upsertion(NamedTuple):
    """A credential to be stored. Its repr has no secret."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"Upsertion({self.user!r}, {self.mechanism}, {self.iterations})"


async def alter_scram_credentials(
    client: MetadataClient, upsertions: Sequence[Upsertion], deletions: Sequence[Deletion]
) -> dict[str, KafkaError | None]:
    """Change the credentials. Returns the error of each user, or None, in the order of Apache Kafka's answer."""
    results: dict[str, KafkaError | None] = {}
    requested: Iterable[Deletion | Upsertion] = chain(deletions, upsertions)
    async for change in in_turns(requested):
        error = _refusal(change)
        if error is not None:
            results[change.user] = error
    upsertions_first: Iterable[Deletion | Upsertion] = chain(upsertions, deletions)
    pairs: dict[tuple[str, int], int] = {}
    async for change in in_turns(upsertions_first):
        if change.user not in results:
            pair = change.user, change.mechanism
            pairs[pair] = pairs.get(pair, 0) + 1
    async for (user, _), count in in_turns(pairs.items()):
        if count > 1:
            results[user] = _DUPLICATE
    users = {user: None async for user, _ in in_turns(pairs) if user not in results}
    configs = await _configs(client, users)
    async for deletion in in_turns(deletions):
        if deletion.user in users and _MECHANISMS[deletion.mechanism].mechanism_name not in configs[deletion.user]:
            results[deletion.user] = _NOT_FOUND
    valid = {user: None async for user in in_turns(users) if user not in results}
    changes = [one async for one in in_turns(upsertions) if one.user in valid]
    if not all(one.salted_password for one in changes):  # one user's empty key fails all, as in Apache Kafka
        return results | dict.fromkeys(valid, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    async for deletion in in_turns(deletions):
        if deletion.user in valid:
            del configs[deletion.user][_MECHANISMS[deletion.mechanism].mechanism_name]
    async for one in in_turns(changes):
        mechanism = _MECHANISMS[one.mechanism]
        credential = mechanism.credential(one.salt, one.salted_password, one.iterations)
        configs[one.user][mechanism.mechanism_name] = credential.to_text()
    async for user in in_turns(valid):
        results[user] = await _write(client, user, configs[user])
    return results


def _refusal(change: Upsertion | Deletion) -> KafkaError | None:
    if not change.user:
        return _NO_USER
    mechanism = _MECHANISMS.get(change.mechanism)
    if mechanism is None:
        return _NO_MECHANISM
    if isinstance(change, Upsertion):
        if change.iterations > MAX_ITERATIONS:
            return _TOO_MANY_ITERATIONS
        if change.iterations < mechanism.min_iterations:
            return _TOO_FEW_ITERATIONS
    return None


async def _configs(client: MetadataClient, users: Iterable[str]) -> dict[str, dict[str, str]]:
    """The whole config of each user. Raises: KafkaError UNKNOWN_SERVER_ERROR."""
    try:
        return {user: await client.entity_config(_path(user)) async for user in in_turns(users)}
    except BadZnode as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error


async def _write(client: MetadataClient, user: str, config: Mapping[str, str]) -> KafkaError | None:
    try:
        await write_client_config(client, _path(user), config)
    except KafkaError as error:
        return error.as_value()
    except TreeError as error:
        logger.info("Error encountered while altering user SCRAM credentials: %s", error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return None


def _path(user: str) -> str:
    return f"users/{znodes.sanitize(user)}"
