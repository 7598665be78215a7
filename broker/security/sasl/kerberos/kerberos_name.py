"""The name of a Kerberos principal, such as `kafka/broker.example.com@EXAMPLE.COM`.

Kafka: KerberosName.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_NAME: Final = re.compile(r"([^/@]*)(/([^/@]*))?@([^/@]*)")


class MalformedName(ValueError):
    """The text is no name of a principal with at most three parts."""


class KerberosName(NamedTuple):
    service_name: str
    """The first component: that of a service, or the name of a user."""
    host_name: str | None
    realm: str | None

    @classmethod
    def parse(cls, principal_name: str) -> KerberosName:
        """A text without `@` is a simple name, whatever it contains. Raises: MalformedName."""
        match = _NAME.fullmatch(principal_name)
        if match is not None:
            return cls(match[1], match[3], match[4])
        if "@" in principal_name:
            raise MalformedName(f"Malformed Kerberos name: {principal_name}")
        return cls(principal_name, None, None)

    def __str__(self) -> str:
        host = "" if self.host_name is None else f"/{self.host_name}"
        realm = "" if self.realm is None else f"@{self.realm}"
        return f"{self.service_name}{host}{realm}"
