"""Keys of authentication.

Kafka: BrokerSecurityConfigs, SaslConfigs, OAuthBearerValidatorCallbackHandler, OAuthBearerLoginCallbackHandler.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.config.keys.key import BrokerConfigKey, UpdateMode
from odradek.broker.config.keys.validators import PythonClassPath
from odradek.storage.config.config_def import ConfigType, Importance, ValidString

_OAUTHBEARER: Final = "org.apache.kafka.common.security.oauthbearer"

VALIDATOR: Final = f"{_OAUTHBEARER}.OAuthBearerValidatorCallbackHandler"
UNSECURED_VALIDATOR: Final = f"{_OAUTHBEARER}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
VALIDATORS: Final = (VALIDATOR, f"{_OAUTHBEARER}.secured.OAuthBearerValidatorCallbackHandler")

LOGIN: Final = f"{_OAUTHBEARER}.OAuthBearerLoginCallbackHandler"
UNSECURED_LOGIN: Final = f"{_OAUTHBEARER}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
LOGINS: Final = (LOGIN, f"{_OAUTHBEARER}.secured.OAuthBearerLoginCallbackHandler")
"""The classes of Apache Kafka's callback handlers of OAUTHBEARER, which are known by their names."""

DEFAULT_PRINCIPAL_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"

SASL_KEYS: Final = (
    BrokerConfigKey(
        "connections.max.reauth.ms",
        ConfigType.LONG,
        "0",
        Importance.MEDIUM,
        "How long a SASL session lasts before the client must authenticate again; 0 sets no limit.",
    ),
    BrokerConfigKey(
        "sasl.server.max.receive.size",
        ConfigType.INT,
        "524288",
        Importance.MEDIUM,
        "The largest request that is accepted before authentication.",
    ),
    BrokerConfigKey(
        "security.providers",
        ConfigType.STRING,
        None,
        Importance.LOW,
        "Classes that supply security algorithms to the JVM.",
    ),
    BrokerConfigKey(
        "principal.builder.class",
        ConfigType.CLASS,
        DEFAULT_PRINCIPAL_BUILDER,
        Importance.MEDIUM,
        "Python class that names clients (docs/security.md), also with the prefix listener.name.<listener>. While the "
        "broker runs, only the default can be set.",
        PythonClassPath(),
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.mechanism.inter.broker.protocol",
        ConfigType.STRING,
        "GSSAPI",
        Importance.MEDIUM,
        "SASL mechanism between brokers.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.enabled.mechanisms",
        ConfigType.LIST,
        "GSSAPI",
        Importance.MEDIUM,
        "SASL mechanisms clients may choose from.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.server.callback.handler.class",
        ConfigType.CLASS,
        None,
        Importance.MEDIUM,
        "Class that checks credentials, with the prefix listener.name.<listener>.<mechanism>. of a SASL mechanism: for "
        "PLAIN and SCRAM a Python class (docs/security.md), for OAUTHBEARER a class of Apache Kafka.",
        PythonClassPath(),
    ),
    BrokerConfigKey(
        "sasl.kerberos.principal.to.local.rules",
        ConfigType.LIST,
        "DEFAULT",
        Importance.MEDIUM,
        "Rules that make a user name of a Kerberos principal; the first that matches counts.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.jaas.config",
        ConfigType.PASSWORD,
        None,
        Importance.MEDIUM,
        "Login context in the format of a JAAS file.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.client.callback.handler.class",
        ConfigType.CLASS,
        None,
        Importance.MEDIUM,
        "Class that supplies credentials on the client.",
    ),
    BrokerConfigKey(
        "sasl.login.class",
        ConfigType.CLASS,
        None,
        Importance.MEDIUM,
        "Class that logs in.",
    ),
    BrokerConfigKey(
        "sasl.login.callback.handler.class",
        ConfigType.CLASS,
        None,
        Importance.MEDIUM,
        "Class that gets the tokens of OAUTHBEARER, with the prefix listener.name.<listener>.oauthbearer.",
        ValidString((*LOGINS, UNSECURED_LOGIN)),
    ),
    BrokerConfigKey(
        "sasl.kerberos.service.name",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "Kerberos name of the service.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.kerberos.kinit.cmd",
        ConfigType.STRING,
        "/usr/bin/kinit",
        Importance.MEDIUM,
        "Path of kinit.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.kerberos.ticket.renew.window.factor",
        ConfigType.DOUBLE,
        "0.8",
        Importance.MEDIUM,
        "Share of a ticket's life after which it is renewed.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.kerberos.ticket.renew.jitter",
        ConfigType.DOUBLE,
        "0.05",
        Importance.MEDIUM,
        "Share by which the time of renewal varies at random.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.kerberos.min.time.before.relogin",
        ConfigType.LONG,
        "60000",
        Importance.MEDIUM,
        "Shortest time between two attempts to renew.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.login.refresh.window.factor",
        ConfigType.DOUBLE,
        "0.8",
        Importance.MEDIUM,
        "Share of a credential's life after which it is renewed.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.login.refresh.window.jitter",
        ConfigType.DOUBLE,
        "0.05",
        Importance.MEDIUM,
        "Share by which the time of sasl.login.refresh.window.factor varies at random.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.login.refresh.min.period.seconds",
        ConfigType.SHORT,
        "60",
        Importance.MEDIUM,
        "Shortest time before a credential is renewed.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.login.refresh.buffer.seconds",
        ConfigType.SHORT,
        "300",
        Importance.MEDIUM,
        "Time before its end by which a credential should be renewed.",
        update_mode=UpdateMode.PER_BROKER,
    ),
    BrokerConfigKey(
        "sasl.login.connect.timeout.ms",
        ConfigType.INT,
        None,
        Importance.LOW,
        "How long to wait for a connection to the token server.",
    ),
    BrokerConfigKey(
        "sasl.login.read.timeout.ms",
        ConfigType.INT,
        None,
        Importance.LOW,
        "How long to wait for an answer of the token server.",
    ),
    BrokerConfigKey(
        "sasl.login.retry.backoff.max.ms",
        ConfigType.LONG,
        "10000",
        Importance.LOW,
        "Longest wait between two attempts to log in.",
    ),
    BrokerConfigKey(
        "sasl.login.retry.backoff.ms",
        ConfigType.LONG,
        "100",
        Importance.LOW,
        "First wait between two attempts to log in.",
    ),
    BrokerConfigKey(
        "sasl.oauthbearer.scope.claim.name",
        ConfigType.STRING,
        "scope",
        Importance.LOW,
        "Claim of a token that holds the scope.",
    ),
    BrokerConfigKey(
        "sasl.oauthbearer.sub.claim.name",
        ConfigType.STRING,
        "sub",
        Importance.LOW,
        "Claim of a token that holds the subject.",
    ),
    BrokerConfigKey(
        "sasl.oauthbearer.token.endpoint.url",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "URL at which tokens are issued.",
    ),
    BrokerConfigKey(
        "sasl.oauthbearer.jwks.endpoint.url",
        ConfigType.STRING,
        None,
        Importance.MEDIUM,
        "URL of the keys with which tokens are signed.",
    ),
    BrokerConfigKey(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        ConfigType.LONG,
        "3600000",
        Importance.LOW,
        "How often the keys of sasl.oauthbearer.jwks.endpoint.url are fetched.",
    ),
    BrokerConfigKey(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        ConfigType.LONG,
        "100",
        Importance.LOW,
        "First wait before the keys of the endpoint are asked for again after a failure.",
    ),
    BrokerConfigKey(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        ConfigType.LONG,
        "10000",
        Importance.LOW,
        "Longest wait before the keys of the endpoint are asked for again after a failure.",
    ),
    BrokerConfigKey(
        "sasl.oauthbearer.clock.skew.seconds",
        ConfigType.INT,
        "30",
        Importance.LOW,
        "How far the clocks of token server and broker may differ.",
    ),
    BrokerConfigKey(
        "sasl.oauthbearer.expected.audience",
        ConfigType.LIST,
        None,
        Importance.LOW,
        "Audiences of which a token must name one.",
    ),
    BrokerConfigKey(
        "sasl.oauthbearer.expected.issuer",
        ConfigType.STRING,
        None,
        Importance.LOW,
        "Issuer a token must name.",
    ),
)
