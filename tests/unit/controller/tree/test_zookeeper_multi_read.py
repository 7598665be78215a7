"""The bytes of a multiRead; the contract of the tree runs it on real servers (conformance)."""

from __future__ import annotations

import struct

from kazoo import exceptions

from odradek.controller.tree.metadata_tree import GetData
from odradek.controller.tree.zookeeper_multi_read import READS_TOGETHER_MAX, MultiRead, ReadTogether
from tests.unit.controller.tree.test_zookeeper_requests import STAT

GET_DATA = struct.pack(">i?i", 4, False, -1)
END = struct.pack(">i?i", -1, True, -1)


def test_a_request_has_a_header_before_each_path_and_one_at_the_end() -> None:
    request = MultiRead(("/a", "/é"))
    path = struct.pack(">i", 3) + "/é".encode()
    assert request.serialize() == GET_DATA + b"\0\0\0\2/a\0" + GET_DATA + path + b"\0" + END
    assert request.type == 22


def test_each_path_has_data_or_an_error() -> None:
    stat = struct.pack(">qqqqiiiqiiq", *STAT)
    refused = struct.pack(">i?i", -1, False, -101) + struct.pack(">i", -101)
    body = GET_DATA + b"\0\0\0\1x" + stat + refused + GET_DATA + b"\xff\xff\xff\xff" + stat + END
    first, second, third = MultiRead.deserialize(b"header" + body, len(b"header"))
    assert (first, third) == ((b"x", STAT), (None, STAT))
    assert isinstance(second, exceptions.NoNodeError)


def test_reads_are_cut_into_requests_of_the_limit() -> None:
    run = [(index, GetData(f"/{index}")) for index in range(5, 6 + 2 * READS_TOGETHER_MAX)]
    groups = list(ReadTogether.of_run(run))
    assert [len(group.reads) for group in groups] == [READS_TOGETHER_MAX, READS_TOGETHER_MAX, 1]
    assert [index for group in groups for index in group.indexes] == [index for index, _ in run]
    assert groups[2].reads == (run[-1][1],)
