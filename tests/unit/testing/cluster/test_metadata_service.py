from __future__ import annotations

from pathlib import Path

import pytest
from kazoo.client import KazooClient

from odradek.broker.machine.startup_error import StartupError
from odradek.testing.cluster.metadata_service import MetadataService
from odradek.testing.errors import BrokerStopped


def test_it_stops_and_starts_again_on_its_port(tmp_path: Path) -> None:
    service = MetadataService(str(tmp_path), 0)
    service.open()
    try:
        address, way = service.address, service.address_for(0)
        assert way != address
        assert service.address_for(0) == way
        assert service.address_for(1) != way
        assert not service.expire_session(0), "no broker is registered"
        assert service.controller_among({0, 1}, timeout_s=0.02) is None
        service.stop()
        assert not service.is_running
        with pytest.raises(StartupError):
            service.expire_session(0)
        with pytest.raises(StartupError):
            service.controller_among({0}, timeout_s=0.02)
        service.start()
        assert service.is_running
        assert service.address == address
        with pytest.raises(RuntimeError):
            service.start()
        service.cut({0})
        service.cut(set())
    finally:
        service.close()
    with pytest.raises(BrokerStopped):
        service.cut(set())


def test_a_service_that_cannot_start_leaves_no_thread(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    service = MetadataService(str(tmp_path / "file" / "below"), 0)
    with pytest.raises(StartupError):
        service.open()
    assert not service._thread.is_alive()


def test_a_controller_is_waited_for(tmp_path: Path) -> None:
    service = MetadataService(str(tmp_path), 0)
    service.open()
    client = KazooClient(service.address)
    try:
        client.start()
        client.create("/controller", b'{"version":2,"brokerid":1,"timestamp":"1","kraftControllerEpoch":-1}')
        assert service.controller_among([0, 1], timeout_s=10) == 1
        assert service.controller_among([0], timeout_s=0.02) is None
    finally:
        client.stop()
        client.close()
        service.close()
