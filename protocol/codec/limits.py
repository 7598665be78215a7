"""Named limits of the protocol. Those an operator can change are broker configurations and not here.

The decoder never allocates more than a frame can justify: every length and count is checked against the bytes that
are left *before* anything is built. What remains is amplification (a one-byte element becomes an object of fifty),
which the budgets below bound. Nesting needs no run-time limit: no message of Kafka contains itself, so its depth is
that of the schema.
"""

from __future__ import annotations

MAX_STRING_BYTES = 0x7FFF
"""Kafka's bound for strings, also where the compact encoding could hold more."""

MAX_DECODED_VALUES = 1_000_000
"""Values one message may hold in its arrays: an element counts one, a struct one more for each field. That is a Fetch
of 125,000 partitions. At worst it makes 60 MB of objects."""

MAX_CLUSTER_VALUES = 10_000_000
"""The same for what a controller sends about every partition of the cluster: a full UpdateMetadata counts about 20 for
a partition with three replicas."""

MAX_ENCODED_BYTES = 128 << 20
"""What the encoding of one message in steps may need in memory. Records in files do not count, and a large array that
the message contains many times counts once. Full answers about 100,000 partitions have 20 MB. A request that names one
resource many times could ask for gigabytes."""

MAX_TAGGED_FIELDS = 128
"""Tagged fields in one section. Kafka 3.9 knows five at most in a struct; newer peers add some, never hundreds."""

MAX_VARINT_BYTES = 5
MAX_VARLONG_BYTES = 10
