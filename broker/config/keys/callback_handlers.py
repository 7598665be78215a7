"""The classes of Apache Kafka's callback handlers of OAUTHBEARER, which are known by their names.

Kafka: OAuthBearerValidatorCallbackHandler, OAuthBearerLoginCallbackHandler.
"""

from __future__ import annotations

from typing import Final

_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"

VALIDATOR: Final = f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler"
UNSECURED_VALIDATOR: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
VALIDATORS: Final = (VALIDATOR, f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler")

LOGIN: Final = f"{_PACKAGE}.OAuthBearerLoginCallbackHandler"
UNSECURED_LOGIN: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
LOGINS: Final = (LOGIN, f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler")
