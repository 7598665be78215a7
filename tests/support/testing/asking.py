"""Questions that tests of the test kit ask."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from odradek.controller.tree.metadata_tree import Create, NoNode
from odradek.protocol.messages.create_topics import CreatableTopic
from odradek.testing.node.questions.questions import question

if TYPE_CHECKING:
    from odradek.testing.node.running.running_broker import RunningBroker

NODE = "/made-by-a-test"


@question
async def make_node_of_test(broker: RunningBroker) -> None:
    """Leave a trace in the metadata tree."""
    await broker.services.controller.client.tree.run(Create(NODE, b""))


@question
async def has_node_of_test(broker: RunningBroker) -> bool:
    return "made-by-a-test" in await broker.services.controller.client.children("/")


@question
async def fail_in_broker(broker: RunningBroker, text: str) -> None:
    raise NoNode("/nowhere", text)


@question
async def process_id(broker: RunningBroker) -> int:
    return os.getpid()


@question
async def log_directory(broker: RunningBroker) -> str:
    return broker.server.config.log_dirs[0]


@question
async def lose_the_disk(broker: RunningBroker) -> None:
    broker.server.failed.set_exception(OSError("the disk is gone"))


@question
async def never_answered(broker: RunningBroker) -> None:
    await broker.server.failed


@question
async def give_what_cannot_be_pickled(broker: RunningBroker) -> object:
    return broker


@question
async def config_of_broker(broker: RunningBroker, name: str) -> str | None:
    return broker.server.config.text(name)


@question
async def make_topic_of_test(broker: RunningBroker, name: str) -> None:
    """Create a topic with one partition, as CreateTopics does."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    (result,) = (await broker.services.admin.create_topics([topic], timeout_ms=5_000)).values()
    assert not result.error_code, result


class Unreadable(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


@question
async def raise_what_cannot_be_unpickled(broker: RunningBroker, text: str) -> None:
    raise Unreadable(text, "")


@question
async def what_it_inherits(broker: RunningBroker, variable: str, module: str) -> tuple[str | None, str, bool]:
    """The value of an environment variable, the working directory, whether the module can be found."""
    return os.environ.get(variable), os.getcwd(), find_spec(module) is not None


@question
async def print_in_broker(broker: RunningBroker, text: str) -> None:
    print(text, flush=True)


@question
async def loaded_modules(broker: RunningBroker) -> set[str]:
    return set(sys.modules)
