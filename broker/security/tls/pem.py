"""PEM texts: entries are found as Apache Kafka finds them, and written as OpenSSL reads them.

A value in a properties file may have spaces where a file has ends of lines, and other text around the entries.

Kafka: DefaultSslEngineFactory.PemParser.
"""

from __future__ import annotations

import base64
import binascii
import re
import textwrap
from collections import Counter
from typing import Final, NamedTuple

from odradek.storage.config.config_def import ConfigError

CERTIFICATE: Final = "CERTIFICATE"
PRIVATE_KEY: Final = "PRIVATE KEY"
REVOCATION_LIST: Final = "X509 CRL"

_ENTRY: Final = re.compile(
    r"""
    (?<!-) -++BEGIN \s++ ( [A-Z0-9]++ (?: [ ]++ [A-Z0-9]++ )*+ ) \s*+ -++ \s++
    (?: [\w-]++ : (?: [^\r\n-] | -(?!BEGIN) )*+ [\r\n]++ )*+
    ( [a-zA-Z0-9/+=\s]*+ ) -++END \s [^-]*+ -++
    """,
    re.VERBOSE | re.ASCII,
)
"""Each search ends at the next `-BEGIN` at the latest and no quantifier gives anything back, so that the time grows
with the length of the text and not with its square: clients send these texts, too."""

_END_OF_LIST: Final = re.compile(r"-(BEGIN|END)\s+X509\s+CRL", re.ASCII)
"""Either end. The line of the other end may be damaged, or cut off."""


class PemEntry(NamedTuple):
    """One entry with its label: `ENCRYPTED PRIVATE KEY`."""

    label: str
    content: bytes

    def text(self) -> str:
        """The entry in the form that OpenSSL reads."""
        lines = "\n".join(textwrap.wrap(base64.b64encode(self.content).decode(), 64))
        return f"-----BEGIN {self.label}-----\n{lines}\n-----END {self.label}-----\n"


def pem_entries(text: str, name: str) -> list[PemEntry]:
    """The entries whose label ends with `name`. As in Apache Kafka a damaged one is no entry. Raises: ConfigError if
    there is none.
    """
    found = _entries(text, name)
    if not found:
        raise ConfigError(f"No matching {name} entries in PEM file")
    return found


def revocation_lists(text: str) -> list[PemEntry]:
    """The lists in a trust store, which may have none. Raises: ConfigError if one is damaged: a store without its list
    would let in those that it revokes.
    """
    found = _entries(text, REVOCATION_LIST)
    ends = Counter(match[1] for match in _END_OF_LIST.finditer(text))
    if max(ends["BEGIN"], ends["END"]) > len(found):
        raise ConfigError(
            f"Damaged {REVOCATION_LIST} entry in PEM: {ends['BEGIN']} begin and {ends['END']} end, "
            f"and {len(found)} can be read"
        )
    return found


def _entries(text: str, name: str) -> list[PemEntry]:
    """Raises: ConfigError for an entry that is no Base64."""
    found = []
    for match in _ENTRY.finditer(text):
        label = " ".join(match[1].split())
        if label.endswith(name):
            try:
                found.append(PemEntry(label, base64.b64decode("".join(match[2].split()), validate=True)))
            except binascii.Error as error:
                raise ConfigError(f"Invalid {name} entry in PEM: {error}") from None
    return found
