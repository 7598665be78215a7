from __future__ import annotations

from types import SimpleNamespace

from odradek.broker.metrics.families.connection_families import MAX_CLIENT_SOFTWARE
from odradek.broker.network.authentication.authentication_counts import AuthenticationCounts
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.in_process.scraping import ScrapedBroker

NAME = "kafka_server_socket_server_metrics_"


class Hashable(SimpleNamespace):
    """As a connection."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def test_connections_are_listed_by_listener_and_software_within_a_limit(
    broker: InProcessBroker, scraped: ScrapedBroker
) -> None:
    def connection(number: int) -> Hashable:
        return Hashable(listener_name="A", client_software_name=f"x{number}", client_software_version="1")

    sockets = scraped.sources.sockets
    found = {connection(number): "host" for number in range(MAX_CLIENT_SOFTWARE + 5)}
    sockets.connections = found  # type: ignore[assignment]
    scrape = scraped.scrape()
    assert scrape.value(f"{NAME}connection_count", listener="A", networkProcessor="0") == len(found)
    assert len(scrape.labels_of(f"{NAME}connections_software")) == MAX_CLIENT_SOFTWARE


def test_authentications_are_counted_by_listener(broker: InProcessBroker, scraped: ScrapedBroker) -> None:
    counts = {"A": AuthenticationCounts(1, 2, 3, 4, 5, 6), "B": AuthenticationCounts(expired_connections_killed=1)}
    scraped.sources.sockets.authentication_counts = counts  # type: ignore[misc]
    found = scraped.scrape()
    for number, sensor in enumerate(
        (
            "successful_authentication",
            "successful_reauthentication",
            "successful_authentication_no_reauth",
            "failed_authentication",
            "failed_reauthentication",
        ),
        1,
    ):
        name = f"{NAME}{sensor}_total"
        assert found.value(name, listener="A", networkProcessor="0") == number
        assert found.value(name, listener="B", networkProcessor="0") == 0
    expired = f"{NAME}expired_connections_killed_count"
    assert [found.value(expired, listener=name, networkProcessor="0") for name in "AB"] == [6, 1]
    assert found.value("kafka_network_socketserver_expiredconnectionskilledcount") == 7


def test_connections_that_came_and_went(scraped: ScrapedBroker) -> None:
    sockets = scraped.sources.sockets
    sockets.end_points = (SimpleNamespace(listener_name="A"), SimpleNamespace(listener_name="B"))  # type: ignore[assignment]
    connection = SimpleNamespace(listener_name="A", client_software_name="x", client_software_version="1")
    meters = sockets.connection_meters
    assert meters is not None
    meters.listeners["A"].accepted = 5
    found = scraped.scrape()
    of_a, of_b = ({"listener": name, "networkProcessor": "0"} for name in "AB")
    assert found.value(f"{NAME}connection_creation_total", **of_a) == 5
    assert found.value(f"{NAME}connection_close_total", **of_a) == 5
    assert found.value(f"{NAME}connection_creation_total", **of_b) == 0
    assert found.value(f"{NAME}connection_close_total", **of_b) == 0
    sockets.connections = {Hashable(**vars(connection)): "host"}  # type: ignore[dict-item]
    assert scraped.scrape().value(f"{NAME}connection_close_total", **of_a) == 4


def test_rates_of_connections_and_their_limits(scraped: ScrapedBroker) -> None:
    sockets = scraped.sources.sockets
    sockets.accept_rates = lambda: (2.5, {"A": 1.5, "B": 1.0})  # type: ignore[method-assign]
    meters = sockets.connection_meters
    assert meters is not None
    meters.listener_throttled("A", 40)
    meters.address_throttled("B", 30)
    found = scraped.scrape()
    assert [found.value(f"{NAME}connection_accept_rate", listener=name) for name in "AB"] == [1.5, 1.0]
    assert found.value(f"{NAME}broker_connection_accept_rate") == 2.5
    assert found.labels_of(f"{NAME}connection_accept_throttle_time") == [{"listener": "A"}]
    assert found.value(f"{NAME}connection_accept_throttle_time", listener="A") == 40
    assert found.value(f"{NAME}ip_connection_accept_throttle_time", listener="B") == 30
