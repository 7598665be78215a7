"""Links to brokers by id; the metadata cache gives their present addresses.

A link is kept until the broker is gone or has another address. A broker reaches itself through its `OwnLink`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.config.listeners import ListenerSecurity
    from odradek.broker.inter_broker.own_link import OwnLink
    from odradek.broker.inter_broker.ports import BrokerLink, MakeLink
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.controller.model.broker_info import EndPoint


class BrokerLinks:
    """The links of one purpose: each broker has one, so requests of one purpose reach it one at a time."""

    def __init__(
        self,
        make_link: MakeLink,
        own_link: OwnLink,
        cache: MetadataCache,
        *,
        broker_id: int,
        listener: ListenerSecurity,
        client_id: str,
    ) -> None:
        self._make_link = make_link
        self._own_link = own_link
        self._cache = cache
        self._broker_id = broker_id
        self._listener = listener
        self._client_id = client_id
        self._links: dict[int, tuple[EndPoint, BrokerLink]] = {}

    def link(self, broker_id: int) -> BrokerLink:
        """Raises: ConnectionRefusedError if the broker is not alive, or does not have the listener."""
        if broker_id == self._broker_id:
            return self._own_link
        end_point = self._cache.end_point(broker_id, self._listener)
        if broker_id in self._links:
            known, link = self._links[broker_id]
            if known == end_point:
                return link
            self.close_link(broker_id)
        if end_point is None:
            raise ConnectionRefusedError(f"broker {broker_id} is not alive or has no listener {self._listener.name}")
        link = self._make_link(end_point, client_id=self._client_id)
        self._links[broker_id] = end_point, link
        return link

    def close_link(self, broker_id: int) -> None:
        """Close the link to a broker; the next request opens a new one."""
        _, link = self._links.pop(broker_id, (None, None))
        if link is not None:
            link.close()

    def close(self) -> None:
        for broker_id in list(self._links):
            self.close_link(broker_id)
