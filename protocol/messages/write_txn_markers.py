"""WriteTxnMarkers (API key 27), versions 0-1, flexible from 1.

The transaction coordinator has the outcome of transactions written to their partitions.

v1   flexible
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import INT32, Request, Response, Struct, array, boolean, int16, int32, int64, string


class WritableTxnMarkerTopic(Struct):
    name: str = string("0+")
    partition_indexes: Sequence[int] = array(INT32, "0+", packed=True)


class WritableTxnMarker(Struct):
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    transaction_result: bool = boolean("0+")
    topics: Sequence[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic, "0+", packed=True)
    coordinator_epoch: int = int32("0+")


class WriteTxnMarkersRequest(Request, key=27, versions="0-1", flexible="1+"):
    markers: Sequence[WritableTxnMarker] = array(WritableTxnMarker, "0+", packed=True)


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class WritableTxnMarkerTopicResult(Struct):
    name: str = string("0+")
    partitions: Sequence[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult, "0+")


class WritableTxnMarkerResult(Struct):
    producer_id: int = int64("0+")
    topics: Sequence[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult, "0+")


class WriteTxnMarkersResponse(Response, key=27, versions="0-1", flexible="1+"):
    markers: Sequence[WritableTxnMarkerResult] = array(WritableTxnMarkerResult, "0+")
