"""A small evaluator of PromQL, for the queries of the dashboard and the alert rules, over scrapes of a test.

It knows what these queries use, and refuses everything else: selectors with matchers, `rate` and `increase` over a
range, `sum`, `max`, `min`, `avg`, `count` with `by` or `without`, `topk`, `clamp_min`, `absent`, `and`, arithmetic and
comparisons with numbers or between vectors of the same labels. Grafana's variables are replaced before.

Prometheus: https://prometheus.io/docs/prometheus/latest/querying/basics/
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from tests.support.in_process.scraping import Scraped

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Value = Vector | float

TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)|(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<range>\[\d+[smhd]\])|(?P<symbol>==|!=|=~|!~|<=|>=|[-+*/(){},=<>]))""",
    re.VERBOSE,
)
AGGREGATIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "count": len,
    "avg": lambda values: sum(values) / len(values),
}
COMPARISONS = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le, "==": operator.eq}
COMPARISONS["!="] = operator.ne
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}


class PromqlError(Exception):
    """The query is wrong, or uses what this evaluator does not know."""


class Scrapes:
    """Two scrapes of one target, `seconds` apart: a rate is the difference of both."""

    def __init__(self, earlier: Scraped, later: Scraped, seconds: float) -> None:
        self.earlier = self._by_name(earlier)
        self.later = self._by_name(later)
        self.seconds = seconds

    @staticmethod
    def _by_name(scraped: Scraped) -> dict[str, Vector]:
        found: dict[str, Vector] = defaultdict(dict)
        for (name, labels), value in scraped.values.items():
            found[name][labels] = value
        found["up"][frozenset()] = 1.0
        return found


def evaluate(query: str, scrapes: Scrapes) -> Value:
    """The value of an instant query. Raises: PromqlError."""
    parser = _Parser(query, scrapes)
    value = parser.expression()
    if parser.left:
        raise PromqlError(f"{parser.left[0][1]!r} is not understood in {query!r}")
    return value


class _Parser:
    def __init__(self, query: str, scrapes: Scrapes) -> None:
        self._scrapes = scrapes
        self._query = query
        self.left: list[tuple[str, str]] = []
        position = 0
        while position < len(query.rstrip()):
            match = TOKEN.match(query, position)
            if match is None or match.lastgroup is None:
                raise PromqlError(f"{query[position:]!r} is not understood")
            self.left.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()

    def _peek(self) -> str:
        return self.left[0][1] if self.left else ""

    def _take(self, *expected: str) -> str:
        if not self.left or (expected and self.left[0][1] not in expected):
            raise PromqlError(
                f"{' or '.join(expected) or 'more'} is missing before {self._peek()!r} in {self._query!r}"
            )
        return self.left.pop(0)[1]

    def expression(self) -> Value:
        value = self._comparison()
        while self._peek() == "and":
            self._take()
            value = _both(value, self._comparison())
        return value

    def _comparison(self) -> Value:
        value = self._sum()
        while self._peek() in COMPARISONS:
            value = _compare(value, self._take(), self._sum())
        return value

    def _sum(self) -> Value:
        value = self._product()
        while self._peek() in ("+", "-"):
            value = _calculate(value, self._take(), self._product())
        return value

    def _product(self) -> Value:
        value = self._atom()
        while self._peek() in ("*", "/"):
            value = _calculate(value, self._take(), self._atom())
        return value

    def _atom(self) -> Value:
        kind, text = self.left[0] if self.left else ("", "")
        if text == "(":
            self._take()
            value = self.expression()
            self._take(")")
            return value
        if kind == "number":
            return float(self._take())
        if kind != "name":
            raise PromqlError(f"{text!r} is not understood in {self._query!r}")
        self._take()
        if text in AGGREGATIONS:
            return self._aggregate(AGGREGATIONS[text])
        if self._peek() == "(":
            return self._function(text)
        return self._select(text, self._scrapes.later)

    def _aggregate(self, combine: Callable[[Sequence[float]], float]) -> Vector:
        grouping = self._grouping()
        self._take("(")
        vector = _vector(self.expression())
        self._take(")")
        keep = grouping or self._grouping() or (lambda labels: frozenset())
        groups: dict[Labels, list[float]] = defaultdict(list)
        for labels, value in vector.items():
            groups[keep(labels)].append(value)
        return {labels: float(combine(values)) for labels, values in groups.items()}

    def _grouping(self) -> Callable[[Labels], Labels] | None:
        if self._peek() not in ("by", "without"):
            return None
        how = self._take()
        self._take("(")
        names = set()
        while self._peek() != ")":
            names.add(self._take())
            if self._peek() == ",":
                self._take()
        self._take(")")
        is_by = how == "by"
        return lambda labels: frozenset((name, value) for name, value in labels if (name in names) is is_by)

    def _function(self, name: str) -> Value:
        self._take("(")
        if name in ("rate", "increase"):
            value: Value = self._rate(1 if name == "increase" else self._scrapes.seconds)
        elif name == "topk":
            count = int(float(self._take()))
            self._take(",")
            ordered = sorted(_vector(self.expression()).items(), key=lambda item: -item[1])
            value = dict(ordered[:count])
        elif name == "clamp_min":
            vector = _vector(self.expression())
            self._take(",")
            low = float(self._take())
            value = {labels: max(low, found) for labels, found in vector.items()}
        elif name == "absent":
            value = {} if self.expression() else {frozenset(): 1.0}
        else:
            raise PromqlError(f"the function {name} is not known")
        self._take(")")
        return value

    def _rate(self, seconds: float) -> Vector:
        name = self._take()
        before = self.left[:]
        later = self._select(name, self._scrapes.later)
        self.left = before
        earlier = self._select(name, self._scrapes.earlier)
        if not self.left or self.left[0][0] != "range":
            raise PromqlError(f"a range is missing in {self._query!r}")
        self._take()
        if not (name.endswith(("_total", "_count"))):
            raise PromqlError(f"{name} is no counter")
        return {labels: (value - earlier.get(labels, 0)) / seconds for labels, value in later.items()}

    def _select(self, name: str, found: dict[str, Vector]) -> Vector:
        matchers: list[tuple[str, str, str]] = []
        if self._peek() == "{":
            self._take()
            while self._peek() != "}":
                label, sign = self._take(), self._take("=", "!=", "=~", "!~")
                matchers.append((label, sign, self._take()[1:-1]))
                if self._peek() == ",":
                    self._take()
            self._take("}")
        if name not in found:
            raise PromqlError(f"there is no metric {name}")
        return {labels: value for labels, value in found[name].items() if _matches(dict(labels), matchers)}


def _matches(labels: dict[str, str], matchers: Sequence[tuple[str, str, str]]) -> bool:
    for label, sign, wanted in matchers:
        value = labels.get(label, "")
        is_equal = value == wanted if sign in ("=", "!=") else re.fullmatch(wanted, value) is not None
        if is_equal is sign.startswith("!"):
            return False
    return True


def _vector(value: Value) -> Vector:
    if isinstance(value, float):
        raise PromqlError("a vector is needed instead of a number")
    return value


def _both(left: Value, right: Value) -> Vector:
    return {labels: value for labels, value in _vector(left).items() if labels in _vector(right)}


def _compare(left: Value, sign: str, right: Value) -> Vector:
    vector = _vector(left)
    return {
        labels: value
        for labels, value in vector.items()
        if isinstance(right, float) or labels in right
        if COMPARISONS[sign](value, right if isinstance(right, float) else right[labels])
    }


def _calculate(left: Value, sign: str, right: Value) -> Value:
    def apply(one: float, other: float) -> float:
        if sign == "/":
            return one / other if other else float("nan")
        return float(ARITHMETIC[sign](one, other))

    if isinstance(left, float) and isinstance(right, float):
        return apply(left, right)
    if isinstance(left, float):
        return {labels: apply(left, value) for labels, value in _vector(right).items()}
    if isinstance(right, float):
        return {labels: apply(value, right) for labels, value in left.items()}
    return {labels: apply(value, right[labels]) for labels, value in left.items() if labels in right}
