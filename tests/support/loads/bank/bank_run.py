"""A run of the bank with a bad network, and kills of the broker and of the tellers."""

from __future__ import annotations

import random
from collections.abc import Callable

from odradek.controller.model.topic_names import GROUP_METADATA_TOPIC
from odradek.protocol.api import ApiKey
from tests.support.broker import FAST_SETTINGS, Broker
from tests.support.loads.bank.bank import TRANSACTION_TIMEOUT_MS, Bank
from tests.support.loads.bank.stable_offset_watch import SWEEP_S, StableOffsetWatch
from tests.support.wire.fault_proxy import behind_proxy
from tests.support.wire.faults import Fault, RandomFaults

CUTS = {Fault.CUT_BEFORE: 0.01, Fault.CUT_AFTER: 0.01}
DUPLICATES = {Fault.DELAY: 0.05, Fault.CUT_BEFORE: 0.02, Fault.CUT_AFTER: 0.03, Fault.DUPLICATE: 0.1}
REPLAYS = DUPLICATES | {Fault.REPLAY: 0.15}
PROBABILITIES = {
    ApiKey.ADD_PARTITIONS_TO_TXN: REPLAYS,
    ApiKey.ADD_OFFSETS_TO_TXN: REPLAYS,
    ApiKey.TXN_OFFSET_COMMIT: REPLAYS,
    ApiKey.END_TXN: REPLAYS,
    ApiKey.PRODUCE: REPLAYS,
    ApiKey.INIT_PRODUCER_ID: DUPLICATES,
    ApiKey.FIND_COORDINATOR: CUTS,
    ApiKey.OFFSET_FETCH: CUTS,
    ApiKey.METADATA: CUTS,
    ApiKey.FETCH: CUTS,
}
TOLERANCE_S = 1.5
"""The time that a busy machine may add to a time-out, to a sweep, and to the measurement."""

SMALL = {"log.segment.bytes": "50000", "transaction.state.log.segment.bytes": "20000"}


def survive(
    make_broker: Callable[[dict[str, str]], Broker],
    *,
    tellers: int,
    transfers: int,
    kills: int,
    seed: int,
    late_offsets: bool = True,
) -> None:
    """Work until all is booked, then check the accounts, and how long readers of committed records had to wait.

    Without `late_offsets` no TxnOffsetCommit comes late: in Apache Kafka it takes offsets out of a transaction.
    """
    faults = RandomFaults(seed, PROBABILITIES | ({} if late_offsets else {ApiKey.TXN_OFFSET_COMMIT: CUTS}))
    with behind_proxy(make_broker, faults, SMALL) as (broker, proxy):
        bank = Bank(proxy, tellers=tellers, transfers=transfers, seed=seed)
        offsets = [
            (GROUP_METADATA_TOPIC, number) for number in range(int(FAST_SETTINGS["offsets.topic.num.partitions"]))
        ]
        watch = StableOffsetWatch(broker, [*bank.places, *offsets])
        watch.start()
        try:
            bank.outlive(broker, kills, random.Random(seed))
            faults.calm = True
            bank.check()
        finally:
            faults.calm = True
            watch.stop()
            bank.close()
            print(f"seed {seed}: {sum(bank.booked)} transfers booked, {len(bank.aborted)} tries aborted")
            print(f"the last stable offset stood still for {watch.longest_s:.2f} s at the longest,")
            print(f"{watch.longest_excused_s:.2f} s without the times when the broker was away")
            print("faults:", *(f"{name} {fault.value} {count}," for (name, fault), count in faults.count.items()))
            print("late, and the error:", *(f"{name} {error}: {count}," for (name, error), count in proxy.late.items()))
            print("tellers that ended early:", *bank.failures, sep="\n  ")
    assert bank.aborted
    decisive = {fault for name, fault in faults.count if name in ("EndTxn", "AddPartitionsToTxn")}
    assert decisive >= {Fault.DUPLICATE, Fault.REPLAY}
    assert watch.longest_excused_s < TRANSACTION_TIMEOUT_MS / 1000 + SWEEP_S + TOLERANCE_S
