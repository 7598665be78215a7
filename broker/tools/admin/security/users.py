"""`odradek users`: lists, creates and deletes users that authenticate with SCRAM.

The password is the first line of a file or of standard input, or it is typed: arguments can be seen by other users of
the machine. It does not leave this process, only its salted hash does.

Kafka: Admin.alterUserScramCredentials, Admin.describeUserScramCredentials.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.admin.client.admin_client import run
from odradek.broker.tools.admin.security.scram_requests import ITERATIONS, MECHANISMS, alter_user, describe_users
from odradek.broker.tools.command.arguments import add_actions, add_client_options, command_parser
from odradek.broker.tools.command.columns import tabbed_lines
from odradek.broker.tools.command.failures import CommandFailed

if TYPE_CHECKING:
    import argparse

    from odradek.broker.tools.admin.client.admin_client import AdminClient
    from odradek.broker.tools.command.output import Output

DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"
_EXAMPLES: Final = """\
  odradek users --list
  odradek users --create alice                            asks for the password twice
  odradek users --create alice --password-file secret     SCRAM-SHA-512
  pass show kafka | odradek users --create alice --mechanism SCRAM-SHA-256 --iterations 8192
  odradek users --delete alice                            all credentials of alice
"""


def main(arguments: Sequence[str]) -> int:
    """List, create or delete users. Returns the exit status."""
    command = parser()
    options = command.parse_args(arguments)
    if (options.action == "list") == (options.user is not None):
        command.error("--create and --delete need the name of a user, --list takes none")
    return run(options, _work)


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = command_parser("users", "List, create and delete users that authenticate with SCRAM.", examples=_EXAMPLES)
    parser.add_argument("user", nargs="?", metavar="USER")
    add_actions(
        parser,
        {
            "list": "print the users and their mechanisms",
            "create": "make a user, or change its password",
            "delete": "remove the credentials of a user",
        },
    )
    parser.add_argument(
        "--mechanism",
        choices=sorted(MECHANISMS),
        help=f"created: default {DEFAULT_MECHANISM}; deleted: default all",
    )
    parser.add_argument(
        "--iterations", type=int, default=ITERATIONS, metavar="N", help="of the hash; default %(default)s"
    )
    parser.add_argument(
        "--password-file", metavar="FILE", help="the password is its first line; default standard input"
    )
    add_client_options(parser)
    return parser


async def _work(client: AdminClient, out: Output, options: argparse.Namespace) -> None:
    if options.action == "list":
        await _list(client, out)
    elif options.action == "create":
        mechanism = options.mechanism or DEFAULT_MECHANISM
        credential = f"iterations={options.iterations},password={_password(options.password_file)}"
        await alter_user(client, options.user, {mechanism: credential}, [])
        out.result([{"user": options.user, "created": mechanism}], [f"Created user {options.user} ({mechanism})."])
    else:
        await _delete(client, out, options.user, options.mechanism)


async def _list(client: AdminClient, out: Output) -> None:
    rows = []
    for user, found in await describe_users(client, []):
        if isinstance(found, str):
            out.warn(f"Error retrieving the SCRAM credentials of user '{user}': {found}")
        else:
            rows += [{"user": user, "mechanism": name, "iterations": count} for name, count in sorted(found.items())]
    cells = [[str(value) for value in row.values()] for row in rows]
    out.table(rows, tabbed_lines([("User", "Mechanism", "Iterations"), *cells]))


async def _delete(client: AdminClient, out: Output, user: str, mechanism: str | None) -> None:
    if mechanism is None:
        found = dict(await describe_users(client, [user])).get(user, {})
        if isinstance(found, str):
            raise CommandFailed(f"The SCRAM credentials of user '{user}' cannot be read: {found}")
        removed = sorted(found)
        if not removed:
            raise CommandFailed(f"User '{user}' has no SCRAM credentials")
    else:
        removed = [mechanism]
    await alter_user(client, user, {}, removed)
    out.result([{"user": user, "deleted": removed}], [f"Deleted user {user} ({', '.join(removed)})."])


def _password(path: str | None) -> str:
    """Raises: CommandFailed if it is empty, or typed differently the second time."""
    if path is not None:
        try:
            with open(path, encoding="utf-8") as file:
                password = file.readline().rstrip("\r\n")
        except (OSError, UnicodeError) as error:
            raise CommandFailed(f"the password cannot be read: {error}") from error
    elif sys.stdin.isatty():
        from getpass import getpass

        password = getpass("Password: ")
        if getpass("The same again: ") != password:
            raise CommandFailed("the passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise CommandFailed("the password is empty")
    return password
