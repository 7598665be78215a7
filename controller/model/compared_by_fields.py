"""A base class of small values. Not a dataclass: these make start-up slower."""

from __future__ import annotations


class ComparedByFields:
    """Two of one class with equal fields are equal. The fields are the `__slots__` of the class."""

    __slots__: tuple[str, ...] = ()

    def _fields(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComparedByFields) and type(self) is type(other) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self), self._fields()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self.__slots__, self._fields(), strict=True))
        return f"{type(self).__name__}({fields})"
