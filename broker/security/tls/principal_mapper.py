"""`ssl.principal.mapping.rules`: from the distinguished name of a client's certificate to the name of its principal.

The rules hold Java's regular expressions and replacements. Python's `re` has nearly the same language. With `re.ASCII`
its `\\w`, `\\d` and `(?i)` mean letters and digits of ASCII only, as in Java. What it does not know is refused at the
start.

Kafka: SslPrincipalMapper.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from odradek.protocol.expressions import compile_expression
from odradek.storage.config.config_def import ConfigError

_RULE: Final = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|\Z)", re.ASCII)
_PARSER: Final = re.compile(_RULE, re.ASCII)
_REFERENCE: Final = re.compile(r"\$(\d{1,4})", re.ASCII)
"""More digits than four are text: no expression has so many groups."""
_JAVA_SPACES: Final = "".join(map(chr, range(0x21)))
_NAME_CHARS_MAX: Final = 64 * 1024
"""A longer name is not matched: a certificate can have one, and an expression may take long for it."""


class NoMatchingRule(Exception):
    """No rule applies to the name."""


class _Rule(NamedTuple):
    """`pattern` None: DEFAULT, the name as it is."""

    pattern: re.Pattern[str] | None
    text: str
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(lambda match: _expand(self.replacement, match), name)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def __str__(self) -> str:
        if self.pattern is None:
            return "DEFAULT"
        return f"RULE:{self.text}/{self.replacement}" + (f"/{self.case}" if self.case else "")


class SslPrincipalMapper:
    """The parsed rules."""

    def __init__(self, rules: str) -> None:
        """Raises: ConfigError."""
        self._rules = _parse(rules)

    def name_of(self, distinguished_name: str) -> str:
        """The name by the first rule that applies. Raises: NoMatchingRule. Kafka: SslPrincipalMapper.getName."""
        if len(distinguished_name) <= _NAME_CHARS_MAX:
            for rule in self._rules:
                name = rule.apply(distinguished_name)
                if name is not None:
                    return name
        raise NoMatchingRule(f"No rules apply to {distinguished_name}, rules [{', '.join(map(str, self._rules))}]")

    def __str__(self) -> str:
        return f"SslPrincipalMapper(rules = [{', '.join(map(str, self._rules))}])"


def _parse(rules: str) -> list[_Rule]:
    parsed = []
    for match in _SPLITTER.finditer(rules.strip(_JAVA_SPACES)):
        rule = match[1]
        found = _PARSER.match(rule)
        assert found is not None, "the last alternative matches everything"
        if found.end() != len(rule):
            raise ConfigError(f"Invalid rule: `{rule}`, unmatched substring: `{rule[found.end() :]}`")
        if found[1] is not None:
            parsed.append(_Rule(None, "", "", ""))
        elif found[2] is not None:
            try:
                pattern = compile_expression(found[2])
            except ValueError as error:
                raise ConfigError(f"Invalid rule: `{rule}`: {error}") from None
            parsed.append(_Rule(pattern, found[2], found[4], found[6]))
    return parsed


def _expand(replacement: str, match: re.Match[str]) -> str:
    """Java's `$1` and `\\x` in a replacement; `$9` without a ninth group is literal, as Kafka has it."""
    groups = len(match.groups())
    result: list[str] = []
    at = 0
    while at < len(replacement):
        char = replacement[at]
        if char == "\\" and at + 1 < len(replacement):
            result.append(replacement[at + 1])
            at += 2
            continue
        reference = _REFERENCE.match(replacement, at) if char == "$" else None
        if reference is None:
            result.append(char)
            at += 1
            continue
        digits = reference[1]
        while int(digits) > groups and len(digits) > 1:
            digits = digits[:-1]
        if int(digits) > groups:
            result.append(char)
            at += 1
        else:
            result.append(match[int(digits)] or "")
            at += 1 + len(digits)
    return "".join(result)
