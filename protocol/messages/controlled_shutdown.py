"""ControlledShutdown (API key 7), versions 0-3, flexible from 3.

A broker asks the controller to move its leaderships away before it stops. The answer lists what it still leads.

v0   its request header has no client id
v1   the usual request header
v2   broker_epoch fences an earlier life of the broker (KIP-380)
v3   flexible
"""

from __future__ import annotations

from odradek.protocol.codec.schema import Request, Response, Struct, array, int16, int32, int64, string


class ControlledShutdownRequest(Request, key=7, versions="0-3", flexible="3+"):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("2+", default=-1, ignorable=True)


class RemainingPartition(Struct):
    topic_name: str = string("0+")
    partition_index: int = int32("0+")


class ControlledShutdownResponse(Response, key=7, versions="0-3", flexible="3+"):
    error_code: int = int16("0+")
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition, "0+")
