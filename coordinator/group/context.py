"""Who asks, as far as a group coordinator wants to know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRequestContext:
    """`client_id` is empty if the client gave none; `client_host` is the address as Java prints it (`/127.0.0.1`)."""

    client_id: str
    client_host: str
    api_version: int
