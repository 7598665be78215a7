"""The optional compiled build; everything else about the package is in `pyproject.toml`.

With `ODRADEK_COMPILED=1` the modules through which each record and each request passes are compiled by mypyc, from the
same source. `make compiled` makes a wheel of it. It needs mypy and a C compiler.

A module whose classes name types of `if TYPE_CHECKING` in NamedTuples or dataclasses cannot be among them: mypyc
evaluates these annotations.
"""

from __future__ import annotations

import os

from setuptools import setup

COMPILED = (
    "broker/apis/records/fetch",
    "broker/apis/records/produce",
    "broker/dispatch",
    "broker/faults/answers/faulted_request",
    "broker/fetch/cold_reads",
    "broker/fetch/fetch_wakeups",
    "broker/network/connection/connection",
    "broker/network/frames/frame_assembler",
    "broker/network/requests/request",
    "broker/network/responses/response_sender",
    "broker/partition/hosted_partitions",
    "broker/partition/in_sync_replicas",
    "broker/partition/isr",
    "broker/partition/partition_news",
    "broker/replica_manager/replica_manager",
    "protocol/codec/varint",
    "protocol/framing",
    "protocol/headers",
    "protocol/records/batch",
    "protocol/records/layout",
    "storage/log/leader_epochs",
    "storage/log/local_log",
    "storage/log/log_append",
    "storage/log/log_state",
    "storage/log/unified_log",
    "storage/log/watermarks",
    "storage/segment/file_records",
    "storage/segment/log_segment",
    "storage/segment/log_segments",
    "storage/segment/mapped_index",
    "storage/segment/offset_index",
    "storage/segment/time_index",
    "storage/validation/max_timestamp",
    "storage/validation/validator",
    "timer/purgatory",
)
"""Below `src/odradek`."""

if os.environ.get("ODRADEK_COMPILED") == "1":
    from mypyc.build import mypycify

    modules = mypycify([f"src/odradek/{module}.py" for module in COMPILED], opt_level="3")
else:
    modules = []

setup(ext_modules=modules)
