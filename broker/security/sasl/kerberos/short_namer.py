"""`sasl.kerberos.principal.to.local.rules`: from the name of a Kerberos principal to the name of a Kafka principal.

    RULE:[n:format](match)s/from/to/g/L

applies to names of `n` components (without the realm): `format` makes a text of them (`$0` is the realm, `$1` the
first component), the whole of which `match` must match; then `to` replaces `from`, everywhere with `g`; `/L` and `/U`
make the result lower and upper case. `DEFAULT` takes the first component of names in the default realm. All parts but
the first may be missing. The first rule that applies decides.

The expressions and replacements are Java's. Python's `re` has nearly the same language; an expression that it does not
know is refused at the start.

Kafka: KerberosShortNamer, KerberosRule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.expressions import compile_expression
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from odradek.broker.security.sasl.kerberos.kerberos_name import KerberosName

_RULE: Final = re.compile(
    r"(DEFAULT)|RULE:\[([0-9]*):([^\]]*)](\(([^)]*)\))?(s/([^/]*)/([^/]*)/(g)?)?/?(L|U)?",
)
_PARAMETER: Final = re.compile(r"([^$]*)(\$([0-9]*))?")
_NON_SIMPLE: Final = re.compile("[/@]")
_INT_MAX: Final = 2**31 - 1


class NoShortName(Exception):
    """No rule applies to the name, or the one that does makes no simple name."""


class _Rule(NamedTuple):
    """`components` None: DEFAULT."""

    components: int | None = None
    format: str = ""
    match: re.Pattern[str] | None = None
    from_pattern: re.Pattern[str] | None = None
    to: str = ""
    repeats: bool = False
    case: str = ""

    def apply(self, default_realm: str, parts: Sequence[str]) -> str | None:
        """`parts`: the realm and the components. None: the rule does not apply. Raises: NoShortName."""
        name = self._name(default_realm, parts)
        if name is None:
            return None
        if _NON_SIMPLE.search(name):
            raise NoShortName(f"Non-simple name {name} after auth_to_local rule {self}")
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _name(self, default_realm: str, parts: Sequence[str]) -> str | None:
        if self.components is None:
            return parts[1] if parts[0] == default_realm else None
        if len(parts) - 1 != self.components:
            return None
        base = replace_parameters(self.format, parts)
        if self.match is not None and self.match.fullmatch(base) is None:
            return None
        if self.from_pattern is None:
            return base
        return self.from_pattern.sub(lambda match: _replacement(self.to, match), base, count=0 if self.repeats else 1)

    def __str__(self) -> str:
        if self.components is None:
            return "DEFAULT"
        match = "" if self.match is None else f"({self.match.pattern})"
        substitution = ""
        if self.from_pattern is not None:
            substitution = f"s/{self.from_pattern.pattern}/{self.to}/{'g' * self.repeats}"
        return f"RULE:[{self.components}:{self.format}]{match}{substitution}" + (f"/{self.case}" if self.case else "")


class KerberosShortNamer:
    """The parsed rules."""

    def __init__(self, default_realm: str, rules: Sequence[str]) -> None:
        """`default_realm`: empty, if there is none. Raises: ConfigError."""
        self._default_realm = default_realm
        self._rules = [_parse(rule) for rule in rules]

    def short_name(self, name: KerberosName) -> str:
        """Raises: NoShortName."""
        if name.host_name is None and name.realm is None:
            return name.service_name
        parts = [name.realm or "", name.service_name, *([] if name.host_name is None else [name.host_name])]
        for rule in self._rules:
            short = rule.apply(self._default_realm, parts)
            if short is not None:
                return short
        raise NoShortName(f"No rules apply to {name}, rules [{', '.join(map(str, self._rules))}]")


def _parse(rule: str) -> _Rule:
    match = _RULE.match(rule)
    if match is None:
        raise ConfigError(f"Invalid rule: {rule}")
    if match.end() != len(rule):
        raise ConfigError(f"Invalid rule: `{rule}`, unmatched substring: `{rule[match.end() :]}`")
    if match[1] is not None:
        return _Rule()
    if not match[2] or len(match[2].lstrip("0")) > len(str(_INT_MAX)) or int(match[2]) > _INT_MAX:
        raise ConfigError(f"Invalid rule: {rule}: the number of components is no int")
    try:
        return _Rule(
            int(match[2]),
            match[3],
            None if match[5] is None else compile_expression(match[5]),
            None if match[7] is None else compile_expression(match[7]),
            match[8] or "",
            match[9] is not None,
            match[10] or "",
        )
    except ValueError as error:
        raise ConfigError(f"Invalid rule: `{rule}`: {error}") from None


def replace_parameters(text: str, parts: Sequence[str]) -> str:
    """`text` with `$n` replaced by the part of that number. Raises: NoShortName."""
    result = []
    for match in _PARAMETER.finditer(text):
        result.append(match[1])
        if match[3] is None:
            continue
        if not match[3] or len(match[3].lstrip("0")) > len(str(_INT_MAX)) or int(match[3]) > _INT_MAX:
            raise NoShortName(f"bad format in username mapping in {match[3]}")
        number = int(match[3])
        if number >= len(parts):
            raise NoShortName(f"index {number} from {text} is outside of the valid range 0 to {len(parts) - 1}")
        result.append(parts[number])
    return "".join(result)


def _replacement(text: str, match: re.Match[str]) -> str:
    """Java's replacement: `$1`, `${name}` and `\\x`. Raises: NoShortName. Java: Matcher.appendReplacement."""
    result: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            if at + 1 == len(text):
                raise NoShortName("character to be escaped is missing")
            result.append(text[at + 1])
            at += 2
        elif char == "$":
            group, at = _reference(text, at + 1, match)
            result.append(group)
        else:
            result.append(char)
            at += 1
    return "".join(result)


def _reference(text: str, at: int, match: re.Match[str]) -> tuple[str, int]:
    """The group whose number or `{name}` is at a position, and the position after it. More digits belong to the number
    as long as there is such a group.
    """
    named = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}").match(text, at)
    if named is not None and named[1] in match.re.groupindex:
        return match[named[1]] or "", named.end()
    digit = text[at : at + 1]
    if not ("0" <= digit <= "9"):
        raise NoShortName("Illegal group reference")
    number = int(digit)
    if number > match.re.groups:
        raise NoShortName(f"No group {number}")
    at += 1
    while "0" <= text[at : at + 1] <= "9" and number * 10 + int(text[at]) <= match.re.groups:
        number = number * 10 + int(text[at])
        at += 1
    return match[number] or "", at
