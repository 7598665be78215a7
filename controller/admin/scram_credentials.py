"""DescribeUserScramCredentials: the SCRAM credentials in `/config/users`, one key for each mechanism.

The response has the number of iterations of a credential, never its hashes.

Kafka: ZkAdminManager.describeUserScramCredentials, ScramCredentialUtils.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.controller.loop_turns import counted, in_turns, repeated_in_turns
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import CONFIGS_AT_ONCE
from odradek.protocol.codec.mapped import Zipped
from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.controller.znodes.metadata_client import MetadataClient

MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}

_ITERATIONS: Final = re.compile(r"(?:.*,)?\s*iterations=([0-9]{1,9})\s*(?:,.*)?", re.ASCII)


class UserCredentials(NamedTuple):
    """The iterations by mechanism, or the error."""

    user: str
    iterations: Mapping[int, int]
    error: KafkaError | None = None


async def describe_scram_credentials(
    client: MetadataClient, users: Sequence[str] | None
) -> Sequence[UserCredentials | str]:
    """The credentials of the users, each user once; for None or no users, of all users with credentials, by name.

    The name alone stands for a user without credentials, see `missing`: a request of 1 MB may name 170,000 of them.
    """
    if not users:
        nodes = [name for name in await client.children("/config/users") if name != znodes.DEFAULT_ENTITY]
        configs = await client.entity_configs("users", nodes)
        found = [_credentials(znodes.desanitize(node), config) async for node, config in in_turns(configs.items())]
        with_any = [one async for one in in_turns(found) if one.iterations or one.error is not None]
        return sorted(with_any, key=attrgetter("user"))  # two nodes may have the same name: `a%20b` and `a+b`
    repeated = await repeated_in_turns(users)
    each: Sequence[str] = list(await counted(users)) if repeated else users
    outcomes: list[UserCredentials | None] = []
    left = iter(each)
    while some := list(islice(left, CONFIGS_AT_ONCE)):
        once = [user for user in some if user and user not in repeated]
        configs = await client.entity_configs("users", [znodes.sanitize(user) for user in once])
        async for user in in_turns(some):
            if not user:
                outcomes.append(None)
            elif user in repeated:
                message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
                outcomes.append(_refusal(user, ErrorCode.DUPLICATE_RESOURCE, message))
            else:
                one = _credentials(user, configs[znodes.sanitize(user)])
                outcomes.append(one if one.iterations or one.error is not None else None)
    return Zipped(_told, each, outcomes)


def _told(user: str, outcome: UserCredentials | None) -> UserCredentials | str:
    return user if outcome is None else outcome


def missing(user: str) -> UserCredentials:
    """What is told of a user without credentials."""
    message = (
        f"Attempt to describe a user credential that does not exist: {user}" if user else "Username must not be empty"
    )
    return _refusal(user, ErrorCode.RESOURCE_NOT_FOUND, message)


def _refusal(user: str, code: ErrorCode, message: str) -> UserCredentials:
    return UserCredentials(user, {}, KafkaError(code, message))


def _credentials(user: str, config: Mapping[str, str]) -> UserCredentials:
    iterations: dict[int, int] = {}
    for name, mechanism in MECHANISMS.items():
        if name in config:
            match = _ITERATIONS.fullmatch(config[name])
            if match is None:
                return _refusal(user, ErrorCode.UNKNOWN_SERVER_ERROR, f"The {name} credential is malformed")
            iterations[mechanism] = int(match[1])
    return UserCredentials(user, iterations)
