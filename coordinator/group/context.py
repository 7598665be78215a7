"""The client and version of a request to the group coordinator."""

from __future__ import annotations

from typing import NamedTuple


class GroupRequestContext(NamedTuple):
    """`client_id` may be None; `client_host` is an IP address without a slash."""

    client_id: str | None
    client_host: str
    api_version: int
