"""Invalid request frames: valid ones of every API, changed by a seeded choice of mutations.

The originals are the requests that Kafka's own classes have encoded (tests/golden/wire) and one sample of every API and
version, so that mutations begin from bytes that decode.
"""

from __future__ import annotations

import random
import struct
from typing import Final

from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, encode_request
from tests.support.wire.messages import random_struct
from tests.support.wire.wire_oracle import read_golden

OF_THE_CONTROLLER: Final = frozenset(
    {ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN}
)
"""Without an authorizer a broker carries these out for every client."""

LARGEST_FRAME: Final = 65_536
SAMPLES: Final = 3
EXTREMES: Final = (
    b"\x00",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\x7f\xff",
    b"\x80\x00",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
)
EXTREMES_64: Final = (b"\x80" + bytes(7), b"\x7f" + b"\xff" * 7, b"\xff" * 8)


def originals(seed: int) -> list[bytes]:
    """Frames without their length, all APIs and versions but those of the controller."""
    rng = random.Random(seed)
    frames = []
    keys = {spec.request_type().__name__: spec for spec in API.values() if spec.key not in OF_THE_CONTROLLER}
    for name, version, _, body in read_golden():
        if (spec := keys.get(name)) is not None and spec.min_version <= version <= spec.max_version:
            frames.append(_header(spec.key, version, spec.request_header_version(version) == 2) + body)
    for spec in keys.values():
        for version in range(spec.min_version, spec.max_version + 1):
            for _ in range(SAMPLES):
                request = random_struct(spec.request_type(), version, rng)
                assert isinstance(request, Request)
                frames.append(encode_request(RequestHeader(spec.key, version, 1, "mutated"), request))
    return [frame for frame in frames if len(frame) <= LARGEST_FRAME]


def _header(key: int, version: int, is_flexible: bool) -> bytes:
    return struct.pack(">hhih", key, version, 1, 2) + b"me" + (b"\0" if is_flexible else b"")


def mutated(frame: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """`frame` after one to four mutations, at least a byte long."""
    data = bytearray(frame)
    for _ in range(rng.randrange(1, 5)):
        _mutate(data, others, rng)
    return bytes(data[:LARGEST_FRAME]) or b"\0"


def _mutate(data: bytearray, others: list[bytes], rng: random.Random) -> None:
    position = rng.randrange(len(data) + 1)
    match rng.randrange(8):
        case 0 if position < len(data):
            data[position] ^= 1 << rng.randrange(8)
        case 1:
            extreme = rng.choice(EXTREMES if rng.random() < 0.7 else EXTREMES_64)
            data[position : position + len(extreme)] = extreme
        case 2:
            del data[position:]
        case 3:
            del data[position : position + rng.randrange(1, 16)]
        case 4:
            data[position:position] = rng.randbytes(rng.randrange(1, 64))
        case 5:
            data[position:position] = data[position : position + rng.randrange(1, 64)]
        case 6:
            other = rng.choice(others)
            data[position:] = other[rng.randrange(len(other)) :]
        case _:
            data[position : position + 4] = rng.randbytes(4)
