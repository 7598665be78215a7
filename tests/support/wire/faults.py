"""The faults of a network for a request: drawn from a seed, or listed by a test."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Protocol

from odradek.protocol.api import API, ApiKey
from odradek.protocol.headers import RequestHeader

LONGEST_DELAY_S = 7.0
_MEDIAN_DELAY_S = 0.06


class Fault(Enum):
    """The faults of one request."""

    NONE = "none"
    DELAY = "delay"
    """The request waits, and the later ones of its connection wait, too."""
    DUPLICATE = "duplicate"
    """The broker gets it twice in a row; the client gets the second answer."""
    REFUSE = "refuse"
    """Of Produce: the broker never gets it, and the client gets a retriable error. Later requests overtake it."""
    CUT_BEFORE = "cut before"
    """The broker never gets it, and the connection ends."""
    CUT_AFTER = "cut after"
    """The broker executes it, and the connection ends instead of the answer."""
    REPLAY = "replay"
    """The broker gets it again, later, on another connection."""


class Faults(Protocol):
    """Decides request by request, in the order in which they arrive."""

    def next_fault(self, header: RequestHeader) -> Fault: ...

    def delay_s(self) -> float: ...


class RandomFaults:
    """Each fault of each API with its probability, from a seed. The scheduling of the machine is not repeated by it."""

    def __init__(self, seed: int, probabilities: Mapping[ApiKey, Mapping[Fault, float]]) -> None:
        self._random = random.Random(seed)
        self._probabilities = probabilities
        self.count: Counter[tuple[str, Fault]] = Counter()
        """How often each API had each fault."""
        self.calm = False
        """True: no more faults."""

    def next_fault(self, header: RequestHeader) -> Fault:
        left = self._random.random()
        probabilities = {} if self.calm else self._probabilities.get(ApiKey(header.api_key), {})
        for fault, probability in probabilities.items():
            left -= probability
            if left < 0:
                self.count[API[header.api_key].name, fault] += 1
                return fault
        return Fault.NONE

    def delay_s(self) -> float:
        """Mostly short, and now and then longer than a transaction may last."""
        return min(LONGEST_DELAY_S, _MEDIAN_DELAY_S * self._random.paretovariate(0.7))


class NoFaults:
    """All requests pass. Counts them by API."""

    def __init__(self) -> None:
        self.count: Counter[ApiKey] = Counter()

    def next_fault(self, header: RequestHeader) -> Fault:
        self.count[ApiKey(header.api_key)] += 1
        return Fault.NONE

    def delay_s(self) -> float:
        return 0
