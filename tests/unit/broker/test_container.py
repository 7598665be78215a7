from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest

from odradek.broker import container
from odradek.broker.container import DEFAULTS, NotOneNode, single_node

KRAFT = {
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:32768,BROKER://c1:9093",
}


def test_a_node_with_a_kraft_controller_becomes_a_broker() -> None:
    assert single_node(KRAFT) == {
        "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
        "KAFKA_NODE_ID": "1",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:32768,BROKER://c1:9093",
    }


@pytest.mark.parametrize("connect", ["localhost:2181", "127.0.0.1:2181"])
def test_the_zookeeper_of_the_container_is_left_out(connect: str) -> None:
    settings = {"KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093", "KAFKA_BROKER_ID": "1"}
    assert single_node({**settings, "KAFKA_ZOOKEEPER_CONNECT": connect}) == settings


def test_another_zookeeper_stays() -> None:
    settings = {"KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093", "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181"}
    assert single_node(settings) == settings


def test_without_listeners_it_is_reached_from_outside() -> None:
    assert single_node({}) == DEFAULTS
    named = single_node({"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092"})
    assert named == {**DEFAULTS, "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092"}


@pytest.mark.parametrize(
    "settings",
    [{"KAFKA_PROCESS_ROLES": "controller"}, {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@a:9093,2@b:9093,3@c:9093"}],
)
def test_a_part_of_a_kraft_quorum_is_refused(
    settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NotOneNode):
        single_node({**KRAFT, **settings})
    for name, text in {**KRAFT, **settings}.items():
        monkeypatch.setenv(name, text)
    assert container.main() == 1
    assert capsys.readouterr().err.startswith("odradek: there is no KRaft mode")


def test_it_becomes_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[str, list[str], Mapping[str, str]]] = []
    monkeypatch.setattr(container.os, "execve", lambda *arguments: called.append(arguments))
    monkeypatch.setenv("KAFKA_ZOOKEEPER_CONNECT", "localhost:2181")
    container.main()
    [(program, command, environment)] = called
    assert program == sys.executable
    assert command[1:4] == ["-m", "odradek", "serve"]
    assert command[4:6] == ["--ready-line", "Kafka Server started"]
    assert "KAFKA_ZOOKEEPER_CONNECT" not in environment
