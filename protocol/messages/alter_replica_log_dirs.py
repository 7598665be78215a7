"""AlterReplicaLogDirs (API key 34), versions 0-2, flexible from 2.

Moves replicas between the log directories of one broker (KIP-113).

v1   the response goes out before the client is throttled (KIP-219)
v2   flexible
"""

from __future__ import annotations

from collections.abc import Sequence

from odradek.protocol.codec.schema import INT32, Request, Response, Struct, array, int16, int32, string


class AlterReplicaLogDirTopic(Struct):
    name: str = string("0+")
    partitions: Sequence[int] = array(INT32, "0+", packed=True)


class AlterReplicaLogDir(Struct):
    path: str = string("0+")
    topics: Sequence[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic, "0+", packed=True)


class AlterReplicaLogDirsRequest(Request, key=34, versions="0-2", flexible="2+"):
    dirs: Sequence[AlterReplicaLogDir] = array(AlterReplicaLogDir, "0+", packed=True)


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = string("0+")
    partitions: Sequence[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult, "0+")


class AlterReplicaLogDirsResponse(Response, key=34, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32("0+")
    results: Sequence[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult, "0+")
