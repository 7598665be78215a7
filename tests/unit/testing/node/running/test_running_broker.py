from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from odradek.broker.config.endpoint import EndPoint
from odradek.broker.machine.startup_error import StartupError
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.testing.node.running.running_broker import RunningBroker
from odradek.testing.node.settings import broker_settings


def test_a_reset_is_another_server_on_the_same_address_with_another_directory() -> None:
    async def test() -> None:
        broker = RunningBroker(broker_settings({}, {}), asyncio.get_running_loop())
        await broker.start()
        server, addresses = broker.server, broker.addresses
        broker.clock.advance(1000)
        clock = broker.clock
        await broker.reset()
        assert broker.server is not server
        assert broker.server.config.log_dirs != server.config.log_dirs
        assert not os.path.exists(server.config.log_dirs[0])
        assert broker.addresses == addresses
        assert broker.clock is not clock
        await broker.stop()
        assert not os.path.exists(os.path.dirname(server.config.log_dirs[0]))

    asyncio.run(test())


def test_addresses_are_for_clients() -> None:
    async def test() -> None:
        broker = RunningBroker(broker_settings({}, {}), asyncio.get_running_loop())
        await broker.start()
        hosts = {"ALL": None, "FOUR": "10.0.0.1", "SIX": "::1"}
        broker.server.addresses = tuple(
            EndPoint(host, 9092, name, SecurityProtocol.PLAINTEXT) for name, host in hosts.items()
        )
        assert broker.addresses == {"ALL": "127.0.0.1:9092", "FOUR": "10.0.0.1:9092", "SIX": "[::1]:9092"}
        await broker.stop()

    asyncio.run(test())


def test_a_failed_start_leaves_no_directory() -> None:
    async def test() -> None:
        broker = RunningBroker(
            broker_settings({}, {"listeners": "PLAINTEXT://256.1.1.1:0"}), asyncio.get_running_loop()
        )
        with pytest.raises(StartupError):
            await broker.start()
        assert broker._directory is None

    asyncio.run(test())


def test_data_in_a_named_place_stays_and_such_a_broker_cannot_be_reset(tmp_path: Path) -> None:
    async def test() -> None:
        settings = broker_settings({}, {"log.dirs": str(tmp_path)})
        cluster_ids = []
        for _ in range(2):
            broker = RunningBroker(settings, asyncio.get_running_loop())
            await broker.start()
            cluster_ids.append(broker.server.cluster_id)
            with pytest.raises(RuntimeError, match="cannot be reset"):
                await broker.reset()
            await broker.stop()
        assert cluster_ids[0] == cluster_ids[1]

    asyncio.run(test())


def test_a_server_that_a_reset_has_replaced_fails_alone() -> None:
    async def test() -> None:
        failures: list[BaseException] = []
        broker = RunningBroker(broker_settings({}, {}), asyncio.get_running_loop(), failures.append)
        await broker.start()
        replaced = broker.server
        await broker.reset()
        replaced.failed.set_exception(OSError("of the server before"))
        await asyncio.sleep(0)
        assert failures == []
        broker.server.failed.set_exception(OSError("of this one"))
        await asyncio.sleep(0)
        assert [str(each) for each in failures] == ["of this one"]
        await broker.stop()

    asyncio.run(test())


def test_a_reset_whose_caller_is_cancelled_goes_on() -> None:
    async def test() -> None:
        broker = RunningBroker(broker_settings({}, {}), asyncio.get_running_loop())
        await broker.start()
        server = broker.server
        for _ in range(2):
            resetting = asyncio.ensure_future(broker.reset())
            for _ in range(5):
                await asyncio.sleep(0)
            assert not resetting.done()
            resetting.cancel()
        await broker.advance(1)  # waits for the resets
        assert broker.server is not server
        assert broker.services.metadata_cache.snapshot.nodes
        asyncio.ensure_future(broker.reset()).cancel()
        await asyncio.sleep(0)
        directory = broker._directory
        assert directory is not None
        await broker.stop()
        assert not os.path.exists(directory.path)

    asyncio.run(test())


def test_a_reset_that_fails_is_a_failure_of_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        failures: list[BaseException] = []
        broker = RunningBroker(broker_settings({}, {}), asyncio.get_running_loop(), failures.append)
        await broker.start()
        directory = broker._directory
        assert directory is not None

        async def no_space() -> None:
            raise OSError("no space")

        monkeypatch.setattr(broker, "_start_server", no_space)
        with pytest.raises(OSError, match="no space"):
            await broker.reset()
        assert [str(failure) for failure in failures] == ["no space"]
        await broker.stop()
        assert not os.path.exists(directory.path)

    asyncio.run(test())
