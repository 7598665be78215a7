"""ACLs: who may do what with a node, which ACLs a node may get, and how a client proves who it is.

The schemes are those of a ZooKeeper without further settings: `world`, `auth`, `digest` and `ip`; there is no super
user. `x509` and `sasl` are unknown schemes here: authentication with them fails, and an ACL that names them is invalid.

ZooKeeper: ZooKeeperServer.checkACL, PrepRequestProcessor.fixupACL, DigestAuthenticationProvider,
IPAuthenticationProvider.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Final

from odradek.broker.zookeeper.codes import Code, Permission, Refused
from odradek.broker.zookeeper.jute import Acl, Identity
from odradek.protocol.java_split import java_split

ANYONE: Final = Identity("world", "anyone")
ALL_PERMISSIONS: Final = int(
    Permission.READ | Permission.WRITE | Permission.CREATE | Permission.DELETE | Permission.ADMIN
)
OPEN: Final = (Acl(ALL_PERMISSIONS, ANYONE),)
READ_ONLY: Final = (Acl(int(Permission.READ), ANYONE),)

ACLS_MAX: Final = 100_000
"""The ACLs of a node. A request has fewer, but `auth` is replaced by all identities that a client has proved."""

_ADDRESS_BITS: Final = 32


def check_acl(acls: Sequence[Acl], permission: int, identities: Iterable[Identity]) -> None:
    """Raises Refused(NO_AUTH) if none of the identities has one of the permissions."""
    if not is_allowed(acls, permission, identities):
        raise Refused(Code.NO_AUTH)


def is_allowed(acls: Sequence[Acl], permission: int, identities: Iterable[Identity]) -> bool:
    for acl in acls:
        if acl.permissions & permission:
            if acl.identity == ANYONE:
                return True
            if any(_matches(identity, acl.identity) for identity in identities):
                return True
    return not acls


def fixed_acls(acls: Sequence[Acl] | None, identities: Iterable[Identity]) -> list[Acl]:
    """The ACLs that a node gets: each once, `auth` replaced by what the client has proved. Raises INVALID_ACL."""
    fixed: list[Acl] = []
    for acl in dict.fromkeys(acls or ()):
        scheme, name = acl.identity
        if acl.identity == ANYONE:
            fixed.append(acl)
        elif scheme == "auth":
            proved = [Acl(acl.permissions, identity) for identity in identities if identity.scheme == "digest"]
            if not proved:
                raise Refused(Code.INVALID_ACL)
            fixed += proved
            if len(fixed) > ACLS_MAX:
                raise Refused(Code.INVALID_ACL)
        elif name is not None and (
            (scheme == "digest" and _is_digest(name)) or (scheme == "ip" and _network(name) is not None)
        ):
            fixed.append(acl)
        else:
            raise Refused(Code.INVALID_ACL)
    if not fixed:
        raise Refused(Code.INVALID_ACL)
    return fixed


def proved_identity(scheme: str | None, credentials: bytes | None, address: str) -> Identity | None:
    """What a client proves with an auth request; None: authentication fails."""
    if scheme == "ip":
        return Identity("ip", address)
    if scheme == "digest" and credentials is not None:
        return Identity("digest", digest(credentials.decode("utf-8", "replace")))
    return None


def digest(user_and_password: str) -> str:
    """The id of a user of scheme `digest`: the name, and SHA-1 of name and password."""
    hashed = hashlib.sha1(user_and_password.encode(), usedforsecurity=False).digest()
    return f"{user_and_password.split(':', 1)[0]}:{b64encode(hashed).decode()}"


def without_hashes(acls: Sequence[Acl]) -> list[Acl]:
    """ACLs as they are shown to a client that may read a node and not administer it."""
    return [
        Acl(acl.permissions, Identity("digest", (acl.identity.id or "").split(":", 1)[0] + ":x"))
        if acl.identity.scheme == "digest" and ":" in (acl.identity.id or "")
        else acl
        for acl in acls
    ]


def user_name(identity: Identity) -> str:
    """The name that whoAmI shows."""
    name = identity.id or ""
    return name.split(":", 1)[0] if identity.scheme == "digest" else name


def _matches(identity: Identity, wanted: Identity) -> bool:
    if identity.scheme != wanted.scheme:
        return False
    if identity.scheme == "digest":
        return identity.id == wanted.id
    network, address = _network(wanted.id or ""), _address(identity.id or "")
    return network is not None and address is not None and (address ^ network[0]) >> (_ADDRESS_BITS - network[1]) == 0


def _is_digest(name: str) -> bool:
    return len(java_split(name, ":")) == 2


def _network(text: str) -> tuple[int, int] | None:
    """The address and the number of its bits that count; None if the text is not one."""
    address_text, slash, bits_text = text.partition("/")
    address = _address(address_text)
    bits = _number(bits_text, _ADDRESS_BITS) if slash else _ADDRESS_BITS
    return None if address is None or bits is None else (address, bits)


def _address(text: str) -> int | None:
    parts = text.split(".")
    numbers = [number for part in parts if (number := _number(part, 255)) is not None]
    return int.from_bytes(numbers) if len(numbers) == len(parts) == 4 else None


def _number(text: str, highest: int) -> int | None:
    """A decimal number as Java's Integer.parseInt reads it, from 0 to `highest`."""
    digits = text[1:] if text[:1] == "+" else text
    if not (digits.isdecimal() and digits.isascii() and len(digits) < 10):
        return None
    return int(digits) if int(digits) <= highest else None
