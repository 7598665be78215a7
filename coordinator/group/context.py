"""Who asks, as far as a group coordinator wants to know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRequestContext:
    """`client_id` may be missing; `client_host` is a plain address."""

    client_id: str | None
    client_host: str
    api_version: int
