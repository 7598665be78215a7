"""What Odradek does not serve yet, in one place. The conformance tests hold it both ways: what stands here must be
missing, and nothing else may be. README's "Not yet" says the same in words.
"""

from __future__ import annotations

from odradek.protocol.api import ApiKey

NOT_SERVED = frozenset(
    {
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.ENVELOPE,
    }
)
