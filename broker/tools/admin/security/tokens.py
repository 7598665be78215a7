"""`odradek tokens`: creates, renews, expires and describes delegation tokens, as kafka-delegation-tokens does.

Without owners, all tokens that the client may see are described; Apache's tool prints none then.

Kafka: DelegationTokenCommand.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.command.arguments import add_actions, add_client_options, command_parser
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.controller.model.delegation_token import Principal, TokenInformation
from odradek.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from odradek.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from odradek.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

_EXAMPLES: Final = """\
  odradek tokens --command-config alice.properties --create --renewer-principal User:bob
  odradek tokens --command-config alice.properties --describe
  odradek tokens --command-config alice.properties --expire --hmac HMAC
"""

_LINE: Final = "{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"
_HEADERS: Final = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")


def main(arguments: Sequence[str]) -> int:
    """Create, renew, expire or describe tokens. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    if options.action in ("renew", "expire") and options.hmac is None:
        command.error(f"--{options.action} needs --hmac")
    work = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}
    return run(options, work[options.action])


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser("tokens", "Manage delegation tokens, as kafka-delegation-tokens does.", examples=_EXAMPLES)
    add_actions(
        parser,
        {
            "create": "create a token",
            "renew": "renew a token",
            "expire": "expire a token, at once or later",
            "describe": "print the tokens of owners, or all that you may see",
        },
    )
    for name, text in (("owner", "an owner; may be repeated"), ("renewer", "who may renew; may be repeated")):
        parser.add_argument(
            f"--{name}-principal", action="append", default=[], type=_principal, metavar="User:NAME", help=text
        )
    parser.add_argument("--hmac", type=_hmac, metavar="H", help="the secret of the token, as --create prints it")
    for option, text in (
        ("max-life-time-period", "how long the token can be renewed; -1: as long as the brokers allow"),
        ("renew-time-period", "how long the token lasts from now on; -1: as the brokers say"),
        ("expiry-time-period", "when the token ends; -1: at once"),
    ):
        parser.add_argument(f"--{option}", type=int, default=-1, metavar="MS", help=text)
    add_client_options(parser)
    return parser


def _principal(text: str) -> Principal:
    return Principal.of_text(text.strip())


def _hmac(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


async def _create(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    owners: list[Principal] = options.owner_principal
    renewers: list[Principal] = options.renewer_principal
    if len(owners) > 1:
        raise CommandFailed("a token has one owner")
    request = CreateDelegationTokenRequest(
        owner_principal_type=owners[0].principal_type if owners else None,
        owner_principal_name=owners[0].name if owners else None,
        renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers],
        max_lifetime_ms=options.max_life_time_period,
    )
    answer = await client.ask(request, CreateDelegationTokenResponse)
    check(answer.error_code, None, "the token was not created")
    info = TokenInformation(
        answer.token_id,
        Principal(answer.principal_type, answer.principal_name),
        Principal(answer.token_requester_principal_type, answer.token_requester_principal_name),
        tuple(renewers),
        answer.issue_timestamp_ms,
        answer.max_timestamp_ms,
        answer.expiry_timestamp_ms,
    )
    out.note(f"Created delegation token with tokenId : {info.token_id}")
    _print(out, [(info, answer.hmac)])


async def _renew(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    request = RenewDelegationTokenRequest(hmac=options.hmac, renew_period_ms=options.renew_time_period)
    answer = await client.ask(request, RenewDelegationTokenResponse)
    check(answer.error_code, None, "the token was not renewed")
    _print_expiry(out, "renew", answer.expiry_timestamp_ms)


async def _expire(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    request = ExpireDelegationTokenRequest(hmac=options.hmac, expiry_time_period_ms=options.expiry_time_period)
    answer = await client.ask(request, ExpireDelegationTokenResponse)
    check(answer.error_code, None, "the token was not expired")
    _print_expiry(out, "expire", answer.expiry_timestamp_ms)


async def _describe(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    owners = [
        DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in options.owner_principal
    ]
    request = DescribeDelegationTokenRequest(owners=owners or None)
    answer = await client.ask(request, DescribeDelegationTokenResponse)
    check(answer.error_code, None, "the tokens cannot be described")
    out.note(f"Total number of tokens : {len(answer.tokens)}")
    found = []
    for token in answer.tokens:
        renewers = tuple(Principal(each.principal_type, each.principal_name) for each in token.renewers)
        info = TokenInformation(
            token.token_id,
            Principal(token.principal_type, token.principal_name),
            Principal(token.token_requester_principal_type, token.token_requester_principal_name),
            renewers,
            token.issue_timestamp,
            token.max_timestamp,
            token.expiry_timestamp,
        )
        found.append((info, token.hmac))
    _print(out, found)


def _print_expiry(out: Output, operation: str, expiry_ms: int) -> None:
    line = f"Completed {operation} operation. New expiry date : {_date(expiry_ms)}"
    out.result([{"expiry_timestamp": expiry_ms}], [line])


def _print(out: Output, tokens: Iterable[tuple[TokenInformation, bytes]]) -> None:
    rows: list[dict[str, object]] = []
    lines = [_LINE.format(*_HEADERS).rstrip()]
    for info, hmac in tokens:
        secret, renewers = b64encode(hmac).decode(), [str(renewer) for renewer in info.renewers]
        rows.append(
            {
                "token_id": info.token_id,
                "hmac": secret,
                "owner": str(info.owner),
                "requester": str(info.requester),
                "renewers": renewers,
                "issue_timestamp": info.issue_ms,
                "expiry_timestamp": info.expiry_ms,
                "max_timestamp": info.max_ms,
            }
        )
        dates = map(_date, (info.issue_ms, info.expiry_ms, info.max_ms))
        cells = (info.token_id, secret, str(info.owner), str(info.requester), f"[{', '.join(renewers)}]", *dates)
        lines.append(_LINE.format(*cells).rstrip())
    out.table(rows, lines)


def _date(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms // 1000).strftime("%Y-%m-%dT%H:%M")  # noqa: DTZ006 - as Apache's tool
