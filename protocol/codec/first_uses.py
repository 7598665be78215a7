"""`encode` and `decode` for commands: the first messages of a kind by walking their fields, later ones as `codec` does.

A command that asks one question ends before the functions that `codec` generates would have been worth it: they took a
sixth of the processor time of `odradek groups --list`. A command that goes on uses them from the fifth message of a
kind on, and at once for a message that is not small.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.protocol.codec import codec
from odradek.protocol.codec.field_walk import NotWalked, walk_decode, walk_encode
from odradek.protocol.codec.schema import Message

if TYPE_CHECKING:
    M = TypeVar("M", bound=Message)

WALKED_USES: Final = 4

_walked: Final[dict[tuple[str, type[Message], int], int]] = {}
"""How often a message of this type and version was read or written by walking."""


def encode(message: Message, version: int) -> bytes:
    """As `codec.encode`."""
    if _is_first("encode", message.ENCODERS, type(message), version):
        try:
            return walk_encode(message, version)
        except NotWalked:
            pass
    return codec.encode(message, version)


def decode(
    message_type: type[M],
    buffer: memoryview | bytes,
    version: int,
    budget: codec.DecodeBudget | None = None,
    position: int = 0,
) -> M:
    """As `codec.decode`."""
    if budget is None and _is_first("decode", message_type.DECODERS, message_type, version):
        try:
            return walk_decode(message_type, buffer, version, position)
        except NotWalked:
            pass
    return codec.decode(message_type, buffer, version, budget, position)


def _is_first(what: str, generated: Mapping[int, object], message_type: type[Message], version: int) -> bool:
    if version in generated:
        return False
    key = what, message_type, version
    uses = _walked[key] = _walked.get(key, 0) + 1
    return uses <= WALKED_USES
