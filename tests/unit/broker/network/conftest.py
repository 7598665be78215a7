from __future__ import annotations

import pytest

from tests.support.in_process.connections.network import Handlers, Link


@pytest.fixture
def link() -> Link:
    return Link(Handlers())


@pytest.fixture
def handlers(link: Link) -> Handlers:
    assert isinstance(link.owner, Handlers)
    return link.owner
