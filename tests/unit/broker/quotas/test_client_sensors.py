from __future__ import annotations

from odradek.broker.quotas.client_sensors import INACTIVE_SENSOR_EXPIRATION_MS, ClientSensors, SensorTable
from odradek.timer.sampled_rate import Rate


def sensors(tags: tuple[str, ...], now_ms: int) -> ClientSensors:
    return ClientSensors(tags, Rate(), now_ms)


def tags(table: SensorTable) -> list[str]:
    return [one.tags[0] for one in table]


def test_a_client_keeps_its_sensors() -> None:
    table = SensorTable(sensors)
    first = table.get_or_create(("a",), 0)
    assert table.get_or_create(("a",), 5) is first
    assert len(table) == 1


def test_a_client_is_forgotten_after_an_hour_of_silence() -> None:
    table = SensorTable(sensors)
    table.get_or_create(("silent",), 0)
    table.get_or_create(("active",), 0).record(1, 1)
    table.expire(INACTIVE_SENSOR_EXPIRATION_MS)
    assert tags(table) == ["silent", "active"]
    table.expire(INACTIVE_SENSOR_EXPIRATION_MS + 1)
    assert tags(table) == ["active"]
    table.expire(INACTIVE_SENSOR_EXPIRATION_MS + 2)
    assert tags(table) == []


def test_invented_client_ids_do_not_grow_memory_without_end() -> None:
    table = SensorTable(sensors, max_sensors=3)
    for name in ("a", "b", "c"):
        table.get_or_create((name,), 0)
    table.get_or_create(("a",), 1)
    table.get_or_create(("d",), 2)
    assert tags(table) == ["c", "a", "d"], "the one that was used least recently has gone"


def test_long_client_ids_do_not_grow_memory_without_end() -> None:
    table = SensorTable(sensors, max_tag_characters=10)
    for name in ("aaaa", "bbbb", "cc"):
        table.get_or_create((name, ""), 0)
    assert len(table) == 3
    table.get_or_create(("ddd", ""), 0)
    assert tags(table) == ["bbbb", "cc", "ddd"]
    table.get_or_create(("e" * 20, ""), 0)
    assert tags(table) == ["e" * 20]


def test_the_average_of_throttle_times() -> None:
    one = sensors(("a",), 0)
    one.record_throttle_time(100, 0)
    one.record_throttle_time(200, 40_000)
    assert one.throttle_times is not None
    assert one.throttle_times.measure(40_000) == 150
    assert one.throttle_times.measure(70_000) == 200
