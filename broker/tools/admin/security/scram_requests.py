"""Describes and alters SCRAM credentials of users. The password does not leave this process: only its salted hash does.

Kafka: ConfigCommand.alterUserScramCredentialConfigs, ScramMechanism.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.command.failures import CommandFailed, check, error_text
from odradek.controller.model.scram_mechanism import random_salt
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient

ITERATIONS: Final = 4096
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
_CREDENTIAL: Final = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)", re.DOTALL | re.ASCII)


class Mechanism(NamedTuple):
    """A SCRAM mechanism: its number in requests, and its hash function."""

    number: int
    hash_name: str


MECHANISMS: Final = {"SCRAM-SHA-256": Mechanism(1, "sha256"), "SCRAM-SHA-512": Mechanism(2, "sha512")}


async def describe_users(client: AdminClient, users: Sequence[str]) -> list[tuple[str, dict[str, int] | str]]:
    """Each user with the iterations of its mechanisms, or with an error; all users without names."""
    names = [UserName(name=user) for user in users] or None
    request = DescribeUserScramCredentialsRequest(users=names)
    response = await client.ask(request, DescribeUserScramCredentialsResponse)
    check(response.error_code, response.error_message, "Describing SCRAM credentials")
    by_number = {mechanism.number: name for name, mechanism in MECHANISMS.items()}
    found: list[tuple[str, dict[str, int] | str]] = []
    for result in response.results:
        if result.error_code == ErrorCode.NONE:
            infos = result.credential_infos
            found.append((result.user, {by_number.get(info.mechanism, "UNKNOWN"): info.iterations for info in infos}))
        elif result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            found.append((result.user, error_text(result.error_code, result.error_message)))
    return found


async def alter_user(client: AdminClient, user: str, added: Mapping[str, str], removed: Sequence[str]) -> None:
    """Set and remove the credentials of a user. `added`: mechanism -> `iterations=N,password=P`.

    Raises: CommandFailed.
    """
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=user, mechanism=MECHANISMS[name].number) for name in removed],
        upsertions=[_credential(user, name, text) for name, text in added.items()],
    )
    for result in (await client.ask_controller(request, AlterUserScramCredentialsResponse)).results:
        check(result.error_code, result.error_message, f"Altering SCRAM credentials of user '{user}'")


def salted_password(name: str, text: str) -> tuple[int, bytes, bytes]:
    """Iterations, a new salt and the salted password of `[iterations=N,]password=P`. Raises: CommandFailed."""
    match = _CREDENTIAL.fullmatch(text)
    if match is None or match[1] == "":
        raise CommandFailed(f"Invalid credential property {name}: it must be [iterations=N,]password=P")
    iterations = ITERATIONS if match[1] in (None, "-1") else int(match[1])
    if iterations < ITERATIONS_MIN:
        raise CommandFailed(f"Iterations {iterations} is less than the minimum {ITERATIONS_MIN} required for {name}")
    if iterations > ITERATIONS_MAX:
        raise CommandFailed(f"Iterations {iterations} is greater than the maximum {ITERATIONS_MAX} for {name}")
    salt = random_salt(secrets.token_bytes)
    return iterations, salt, hashlib.pbkdf2_hmac(MECHANISMS[name].hash_name, match[2].encode(), salt, iterations)


def _credential(user: str, name: str, text: str) -> ScramCredentialUpsertion:
    iterations, salt, salted = salted_password(name, text)
    return ScramCredentialUpsertion(
        name=user, mechanism=MECHANISMS[name].number, iterations=iterations, salt=salt, salted_password=salted
    )
