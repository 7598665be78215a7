"""Parser of `sasl.jaas.config`: one login module with its options, as Java's StreamTokenizer reads them.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

Words consist of letters, digits, `.`, `-`, `_` and `$`, and begin with none of `.`, `-` and digits: other values need
quotes. Errors never contain a value.

Kafka: JaasConfig, JaasContext.load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from odradek.broker.security.sasl.ports import JaasEntry
from odradek.protocol.java_split import java_trim
from odradek.storage.config.config_def import ConfigError

_CONTROL_FLAGS: Final = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
_DISALLOWED: Final = frozenset(
    {"com.sun.security.auth.module.JndiLoginModule", "com.sun.security.auth.module.LdapLoginModule"}
)
"""Kafka: JaasUtils.DISALLOWED_LOGIN_MODULES_DEFAULT."""

_TOKEN: Final = re.compile(
    r"""
    (?P<blank> [\x00-\x20]+ | /\*.*?(?:\*/|\Z) | /[^\n\r]* )
    | (?P<number> -?(?:[0-9]+\.?[0-9]*|\.[0-9]*) )
    | (?P<word> (?!-)[a-zA-Z_$\xa0-\U0010ffff][-a-zA-Z0-9._$\xa0-\U0010ffff]* )
    | "(?P<double> (?:\\[^\n\r]|[^"\\\n\r])* )"?
    | '(?P<single> (?:\\[^\n\r]|[^'\\\n\r])* )'?
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
"""A comment begins with `/`, `//` or `/*`. A quoted text ends with its line at the latest."""

_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)")
_ESCAPED: Final = {"a": "\x07", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\x0b"}


class _Token(NamedTuple):
    text: str | None
    """A word or a quoted text; None for numbers and other characters."""
    character: str
    """The character that is neither."""


def parse_jaas_config(text: str) -> JaasEntry:
    """The login module of a property. Raises: ConfigError, if there is not exactly one valid entry."""
    entries = _entries(_tokens(text))
    if not entries:
        raise ConfigError("Login module not specified in JAAS config")
    if len(entries) != 1:
        raise ConfigError(f"JAAS config property contains {len(entries)} login modules, should be 1 module")
    module = entries[0].login_module
    if java_trim(module) in _DISALLOWED:
        raise ConfigError(
            f"{module} is not allowed. Update System property 'org.apache.kafka.disallowed.login.modules' to allow "
            f"{module}"
        )
    return entries[0]


def _entries(tokens: Iterator[_Token]) -> list[JaasEntry]:
    entries = []
    for token in tokens:
        flag = next(tokens, None)
        if flag is None:
            raise ConfigError("Login module control flag not specified in JAAS config")
        if flag.text is None:
            raise ConfigError("Login module control flag is not available in the JAAS config")
        if flag.text.upper() not in _CONTROL_FLAGS:
            raise ConfigError(f"Invalid login module control flag '{flag.text}' in JAAS config")
        options = dict(_options(tokens))
        if token.text is None:
            raise ConfigError("Login module not specified in JAAS config")
        entries.append(JaasEntry(token.text, options))
    return entries


def _options(tokens: Iterator[_Token]) -> Iterator[tuple[str, str]]:
    for key in tokens:
        if key.character == ";":
            return
        equals = next(tokens, None)
        if key.text is None or equals is None or equals.character != "=":
            # What stands here may be a piece of a password that lacks its quotes.
            raise ConfigError("Value not specified for a key in JAAS config")
        value = next(tokens, None)
        if value is None or value.text is None:
            raise ConfigError(f"Value not specified for key '{key.text}' in JAAS config")
        yield key.text, value.text
    raise ConfigError("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "word":
            yield _Token(match["word"], "")
        elif kind in ("double", "single"):
            yield _Token(_ESCAPE.sub(_unescaped, match[kind]), "")
        elif kind == "number":
            yield _Token(None, "")
        elif kind == "other":
            yield _Token(None, match["other"])


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPED.get(escaped, escaped)
