from __future__ import annotations

import os

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.zookeeper.service_settings import make_settings, read_zoo_cfg


def test_defaults_are_zookeepers() -> None:
    settings = make_settings({})
    assert (settings.port, settings.tick_time_ms, settings.max_client_connections) == (2181, 3000, 60)
    assert (settings.min_session_timeout_ms, settings.max_session_timeout_ms) == (6000, 60000)
    assert settings.max_buffer == 0xFFFFF
    assert settings.words == {"srvr"}


def test_time_outs_follow_the_tick() -> None:
    settings = make_settings({"tick_time_ms": 500})
    assert (settings.min_session_timeout_ms, settings.max_session_timeout_ms) == (1000, 10000)
    settings = make_settings({"tick_time_ms": 500, "min_session_timeout_ms": 10, "max_session_timeout_ms": -1})
    assert (settings.min_session_timeout_ms, settings.max_session_timeout_ms) == (10, 10000)


def test_a_zoo_cfg() -> None:
    fields, ignored = read_zoo_cfg(
        [
            "# a comment",
            "",
            "tickTime=500",
            "dataDir = /data",
            "clientPortAddress=0.0.0.0",
            "4lw.commands.whitelist=ruok, stat",
            "zookeeper.jute.maxbuffer=0x400000",
            "initLimit=5",
            "server.1=a:1:2",
        ]
    )
    assert ignored == ["initLimit", "server.1"]
    settings = make_settings(fields)
    assert (settings.tick_time_ms, settings.directory, settings.host) == (500, "/data", "0.0.0.0")
    assert settings.words == {"ruok", "stat", "srvr"}
    assert settings.max_buffer == 4 << 20


def test_the_directory_is_absolute_and_memory_has_none() -> None:
    assert make_settings({"directory": "x"}).directory == os.path.abspath("x")
    assert make_settings({"directory": ":memory:"}).directory == ":memory:"


@pytest.mark.parametrize("lines", [["tickTime"], ["tickTime=soon"]])
def test_lines_that_are_no_setting(lines: list[str]) -> None:
    with pytest.raises(StartupError):
        read_zoo_cfg(lines)


@pytest.mark.parametrize(
    "fields", [{"tick_time_ms": 0}, {"min_session_timeout_ms": 3000, "max_session_timeout_ms": 2000}]
)
def test_settings_that_cannot_be(fields: dict[str, object]) -> None:
    with pytest.raises(StartupError):
        make_settings(fields)
