"""Changed listeners: what the broker registers, and changes that cannot be made. (Other configs: test_server.py.)"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.setup.config_handlers import ConfigHandlers
from odradek.controller.tree.metadata_tree import Create
from odradek.controller.znodes import znodes
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.in_process.in_process_broker import PORT, InProcessBroker, NoSockets, in_process_broker
from tests.support.wire.requests import build

BROKER, SET = 4, 0
OWN = f"PLAINTEXT://127.0.0.1:{PORT}"
SETTINGS = {
    "listeners": OWN,
    "advertised.listeners": OWN,
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT",
}


def set_configs(broker: InProcessBroker, **configs: str) -> None:
    changes = [
        {"name": name.replace("_", "."), "config_operation": SET, "value": value} for name, value in configs.items()
    ]
    asked = [{"resource_type": BROKER, "resource_name": "0", "configs": changes}]
    answer = broker.call(build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=asked), 1)
    assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]  # type: ignore[union-attr]


def registered(broker: InProcessBroker) -> list[tuple[str, int]]:
    """Host and port of each registered endpoint."""

    async def read() -> list[tuple[str, int]]:
        (own,) = await broker.services.controller.client.brokers_and_epochs()
        return [(point.host, point.port) for point in own.end_points]

    return broker.run(read())


def is_registered(broker: InProcessBroker, expected: list[tuple[str, int]]) -> bool:
    """Whether these endpoints are registered after some turns."""
    return any(registered(broker) == expected or broker.settle(lambda: False) for _ in range(20))


def test_registration_follows_the_listeners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[int] = []

    async def update_listeners(self: NoSockets) -> None:
        changes.append(len(self.end_points))

    monkeypatch.setattr(NoSockets, "update_listeners", update_listeners)
    extra = "EXTRA://extra.example:5"
    with in_process_broker(tmp_path, SETTINGS) as broker:
        assert registered(broker) == [("127.0.0.1", PORT)]
        set_configs(broker, listeners=f"{OWN},EXTRA://127.0.0.1:5", advertised_listeners=f"{OWN},{extra}")
        assert is_registered(broker, [("127.0.0.1", PORT), ("extra.example", 5)])
    assert changes == [2]
    with in_process_broker(tmp_path, SETTINGS) as broker:
        assert registered(broker) == [("127.0.0.1", PORT), ("extra.example", 5)], "also at the next start"
    assert changes == [2], "the start opens them all at once"


def test_listener_that_cannot_be_opened_is_not_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def update_listeners(self: NoSockets) -> None:
        raise StartupError("Socket server failed to bind to 127.0.0.1:5: Address already in use.")

    monkeypatch.setattr(NoSockets, "update_listeners", update_listeners)
    with in_process_broker(tmp_path, SETTINGS) as broker:
        set_configs(broker, listeners=f"{OWN},EXTRA://127.0.0.1:5", advertised_listeners=f"{OWN},EXTRA://127.0.0.1:5")
        assert broker.settle(lambda: "The change of the listeners is not complete: Socket server" in caplog.text)
        assert registered(broker) == [("127.0.0.1", PORT)]


def test_address_of_another_broker_is_not_registered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def add_other(broker: InProcessBroker) -> None:
        client = broker.services.controller.client
        own = await client.get(znodes.broker_id_path(0))
        assert own is not None
        other = own.data.replace(str(PORT).encode(), b"5")
        await client.tree.submit([Create(znodes.broker_id_path(7), other)])

    with in_process_broker(tmp_path, SETTINGS) as broker:
        broker.run(add_other(broker))
        set_configs(broker, advertised_listeners="PLAINTEXT://127.0.0.1:5")
        assert broker.settle(lambda: "in advertised listeners are already registered by broker 7" in caplog.text)


def test_configs_of_topics_without_a_log_here_are_not_kept(tmp_path: Path) -> None:
    """LeaderAndIsr reads them before the first log. While it creates logs, a change may be of one of those."""
    with in_process_broker(tmp_path) as broker:
        services, nothing = broker.services, cast("Any", None)
        handlers = ConfigHandlers(services, nothing, nothing, nothing)
        broker.create_topic("here")

        async def change(topic: str, value: str) -> dict[str, str]:
            await handlers.apply("topics", topic, {"retention.ms": value})
            return services.log_manager.config_of(topic).overrides

        async def change_meanwhile(topic: str, value: str) -> dict[str, str]:
            async with services.replica_manager.controller_requests.replica_state_change_lock:
                return await change(topic, value)

        assert broker.run(change("here", "5")) == {"retention.ms": "5"}
        assert broker.run(change("elsewhere", "5")) == {}
        assert broker.run(change_meanwhile("elsewhere", "6")) == {"retention.ms": "6"}
        broker.create_topic("new")
        assert services.log_manager.config_of("elsewhere").overrides == {}
