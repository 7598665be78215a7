"""The pytest plugin: fixtures for brokers, and what a broker saw in the report of a failed test.

`odradek` is the broker of the session: it is started for the first test that uses it and reset before each further one.
Under pytest-xdist each worker process has its own. Nothing of a broker is imported in a run that uses none.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping

    from odradek.testing.async_broker import AsyncBroker
    from odradek.testing.broker import Broker
    from odradek.testing.cluster.cluster import Cluster
    from odradek.testing.node.settings import SettingValue

REPORT_TIMEOUT_S: Final = 5.0
"""A broker that does not answer within this time has no section in the report."""

_USED: Final = pytest.StashKey[list["Broker | Cluster"]]()
"""The brokers and clusters that a test uses."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("odradek_config", "configs of the brokers for tests: key=value, one in a line", type="linelist")
    parser.addini("odradek_own_process", "run brokers for tests in processes of their own", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "odradek(config=None, **options): the fixture odradek is a broker of this test alone, with these configs "
        "(and options of odradek.testing.Broker)",
    )


@pytest.fixture(scope="session")
def _odradek_session(pytestconfig: pytest.Config) -> Iterator[_SessionBroker]:
    session = _SessionBroker(pytestconfig)
    yield session
    session.stop()


@pytest.fixture
def odradek(request: pytest.FixtureRequest, _odradek_session: _SessionBroker) -> Iterator[Broker]:
    """A broker without topics, groups or anything else of another test.

    It is the broker of the session, or with `@pytest.mark.odradek(...)` one of this test alone.
    """
    marker = request.node.get_closest_marker("odradek")
    if marker is None or not (marker.args or marker.kwargs):
        broker = _odradek_session.fresh()
        _used_by(request.node).append(broker)
        yield broker
        return
    with _make(request.config, *marker.args, **marker.kwargs) as broker:
        _used_by(request.node).append(broker)
        yield broker


@pytest.fixture
def odradek_async(odradek: Broker) -> AsyncBroker:
    """The same broker, with methods to be awaited. Works with any plugin for asynchronous tests."""
    from odradek.testing.async_broker import AsyncBroker

    return AsyncBroker.of(odradek)


@pytest.fixture
def odradek_broker(request: pytest.FixtureRequest) -> Iterator[Callable[..., Broker]]:
    """Starts brokers of the test's own: `odradek_broker(config=None, **configs)`, as `odradek.testing.Broker`."""
    with ExitStack() as stops:  # all are stopped, also when one of them cannot be

        def start(*arguments: object, **options: object) -> Broker:
            broker = stops.enter_context(_make(request.config, *arguments, **options))
            _used_by(request.node).append(broker)
            return broker

        yield start


@pytest.fixture
def odradek_async_broker(odradek_broker: Callable[..., Broker]) -> Callable[..., Awaitable[AsyncBroker]]:
    """The same for coroutines: `await odradek_async_broker(config=None, **configs)`."""

    async def start(*arguments: object, **options: object) -> AsyncBroker:
        import asyncio

        from odradek.testing.async_broker import AsyncBroker

        return AsyncBroker.of(await asyncio.to_thread(odradek_broker, *arguments, **options))

    return start


@pytest.fixture
def odradek_cluster(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cluster]]:
    """Starts clusters: `odradek_cluster(3, config=None, **configs)`, as `odradek.testing.Cluster`."""
    with ExitStack() as stops:

        def start(brokers: int = 3, config: Mapping[str, SettingValue] | None = None, **options: object) -> Cluster:
            from odradek.testing.cluster.cluster import Cluster

            configs = {**_ini_configs(request.config), **(config or {})}
            cluster = stops.enter_context(Cluster(brokers, configs, **options))  # type: ignore[arg-type]
            _used_by(request.node).append(cluster)
            return cluster

        yield start


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add a section for each broker of a failed test."""
    report = yield
    if report.failed and report.when != "teardown":
        for used in item.stash.get(_USED, []):
            report.sections += [_section(broker) for broker in getattr(used, "brokers", {0: used}).values()]
    return report


class _SessionBroker:
    """The broker that tests share."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._broker: Broker | None = None

    def fresh(self) -> Broker:
        """The broker, started or reset. A test may have stopped it: then it is started again."""
        from odradek.testing.node.ports import BrokerStopped

        if self._broker is not None:
            try:
                self._broker.reset()
            except BrokerStopped:
                self.stop()
            except BaseException:
                self.stop()  # so that the next test gets another one
                raise
            else:
                return self._broker
        self._broker = _make(self._config).start()
        return self._broker

    def stop(self) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.stop()


def _used_by(item: pytest.Item) -> list[Broker | Cluster]:
    return item.stash.setdefault(_USED, [])


def _make(config: pytest.Config, /, *arguments: object, **options: object) -> Broker:
    """A broker with the options of the ini file, unless the test gives others."""
    from odradek.testing.broker import Broker

    given, *rest = arguments or (options.pop("config", None),)
    if rest or not isinstance(given, dict | None):
        raise TypeError("a broker takes one mapping of configs; give other options by name")
    options.setdefault("own_process", config.getini("odradek_own_process"))
    return Broker({**_ini_configs(config), **(given or {})}, **options)  # type: ignore[arg-type]


def _ini_configs(config: pytest.Config) -> dict[str, str]:
    return dict(_pair(line) for line in config.getini("odradek_config"))


def _pair(line: str) -> tuple[str, str]:
    name, equals, text = line.partition("=")
    if not equals:
        raise pytest.UsageError(f"odradek_config: expected key=value, not {line!r}")
    return name.strip(), text.strip()


def _section(broker: Broker) -> tuple[str, str]:
    from odradek.testing.assertions import failure_report  # noqa: F401 - registers its question
    from odradek.testing.node.ports import BrokerStopped

    try:
        text = str(broker.ask_soon("failure_report").result(REPORT_TIMEOUT_S))
        return f"odradek {broker.bootstrap_servers}", text
    except BrokerStopped:
        return "odradek", "The broker was stopped before the test failed."
    except TimeoutError:
        return "odradek", f"The broker does not answer within {REPORT_TIMEOUT_S:g} s."
    except Exception as error:  # noqa: BLE001 - an error of this hook would end the run of pytest
        return "odradek", f"The report of the broker cannot be made: {error!r}"
