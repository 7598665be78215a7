"""What Odradek does not serve yet, in one place. The conformance tests hold it both ways: what stands here must be
missing, and nothing else may be. README's "Not yet" says the same in words.
"""

from __future__ import annotations

from odradek.protocol.api import ApiKey

NOT_SERVED = frozenset(
    {
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.ENVELOPE,
    }
)

WAITS_FOR_TRANSACTIONS = frozenset(
    {
        *(f"find_coordinator: type 1 v{version}" for version in range(1, 7)),
        "topics_and_partitions: internal topic __transaction_state",
    }
)
"""Answers (test: label) that differ because there is no transaction coordinator and so no topic of its own."""
