"""DescribeUserScramCredentials: the SCRAM credentials in `/config/users`, one key for each mechanism.

The response has the number of iterations of a credential, never its hashes.

Kafka: ZkAdminManager.describeUserScramCredentials, ScramCredentialUtils.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.controller.loop_turns import counted, in_turns, repeated_in_turns
from odradek.controller.tree.metadata_tree import UNANSWERED, GetData, NoNode, TreeError, value_of
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import CONFIGS_AT_ONCE, submit_all
from odradek.controller.znodes.znode_json import BadZnode
from odradek.protocol.codec.arrays.mapped import Zipped
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient

MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}

logger = logging.getLogger(__name__)


class UserCredentials(NamedTuple):
    """The iterations by mechanism, or the error."""

    user: str
    iterations: Mapping[int, int]
    error: KafkaError | None = None


async def describe_scram_credentials(
    client: MetadataClient, users: Sequence[str] | None
) -> Sequence[UserCredentials | str]:
    """The credentials of the users, each user once; for None or no users, of all users with credentials, by name.

    Two nodes may be those of one user, `a%20b` and `a+b`: then one of them is told.

    The name alone stands for a user without credentials, see `missing`: a request of 1 MB may name 170,000 of them.
    """
    if not users:
        nodes = [name for name in await client.children("/config/users") if name != znodes.DEFAULT_ENTITY]
        configs = await client.entity_configs_or_errors("users", nodes)
        found = [_credentials(znodes.desanitize(node), config) async for node, config in in_turns(configs.items())]
        with_any = {one.user: one async for one in in_turns(found) if one.iterations or one.error is not None}
        return sorted(with_any.values(), key=attrgetter("user"))
    repeated = await repeated_in_turns(users)
    each: Sequence[str] = list(await counted(users)) if repeated else users
    outcomes: list[UserCredentials | None] = []
    left = iter(each)
    while some := list(islice(left, CONFIGS_AT_ONCE)):
        once = [user for user in some if user and user not in repeated]
        read = dict(zip(once, await _configs(client, once), strict=True))
        async for user in in_turns(some):
            if not user:
                outcomes.append(None)
            elif user in repeated:
                message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
                outcomes.append(_refusal(user, ErrorCode.DUPLICATE_RESOURCE, message))
            else:
                one = _credentials(user, read[user])
                outcomes.append(one if one.iterations or one.error is not None else None)
    return Zipped(_told, each, outcomes)


async def _configs(client: MetadataClient, users: Sequence[str]) -> list[Mapping[str, str] | None]:
    """The config of each user; None if it cannot be read, which is logged: the user `.` has no path in ZooKeeper."""
    paths = [znodes.entity_config_path(f"users/{znodes.sanitize(user)}") for user in users]
    configs: list[Mapping[str, str] | None] = []
    for path, answer in zip(paths, await submit_all(client.tree, [GetData(path) for path in paths]), strict=True):
        if isinstance(answer, UNANSWERED):
            raise answer
        try:
            configs.append({} if isinstance(answer, NoNode) else znodes.decode_entity_config(value_of(answer).data))
        except (TreeError, BadZnode) as error:
            logger.error("The node %s cannot be read: %s", path, error)
            configs.append(None)
    return configs


def _told(user: str, outcome: UserCredentials | None) -> UserCredentials | str:
    return user if outcome is None else outcome


def missing(user: str) -> UserCredentials:
    """What is told of a user without credentials."""
    message = (
        f"Attempt to describe a user credential that does not exist: {user}" if user else "Username must not be empty"
    )
    return _refusal(user, ErrorCode.RESOURCE_NOT_FOUND, message)


def _refusal(user: str, code: ErrorCode, message: str | None = None) -> UserCredentials:
    return UserCredentials(user, {}, KafkaError(code, message))


def _credentials(user: str, config: Mapping[str, str] | BadZnode | None) -> UserCredentials:
    from odradek.controller.model.scram_credential import ScramCredential  # not needed without SASL

    if isinstance(config, BadZnode):
        logger.error("%s", config)
        config = None
    if config is None:
        return _refusal(user, ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        texts = {mechanism: config[name] for name, mechanism in MECHANISMS.items() if name in config}
        return UserCredentials(
            user, {mechanism: ScramCredential.of_text(text).iterations for mechanism, text in texts.items()}
        )
    except ValueError as error:
        logger.error("A SCRAM credential of %s cannot be read: %s", user, error)
        return _refusal(user, ErrorCode.UNKNOWN_SERVER_ERROR)
