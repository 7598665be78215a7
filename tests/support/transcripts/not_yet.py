"""What Odradek does not do yet, in one place. The conformance tests hold it both ways: what stands here is refused, and
nothing else may be. README's "Not yet" says the same in words.
"""

from __future__ import annotations

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode

REFUSALS = {
    ApiKey.ALTER_CLIENT_QUOTAS: ErrorCode.UNSUPPORTED_VERSION,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ErrorCode.UNSUPPORTED_SASL_MECHANISM,
}
"""With which error every entity of a request is refused."""

DESCRIPTIONS = frozenset({ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS})
"""What has nothing to tell, because it is refused to be set."""
