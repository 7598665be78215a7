"""One cluster and the properties of its clients, in the words of each client that a job uses.

The properties are those of Kafka's Java clients (`--command-config`): Spark's source and sink take them as they are,
confluent-kafka (librdkafka) has other names for some, the project's own tools read a few of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_jobs.common.job import JobError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.tools.command.client_config import ClientConfig

SAME_NAME = (
    "client.id",
    "client.rack",
    "connections.max.idle.ms",
    "enable.idempotence",
    "metadata.max.age.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "sasl.kerberos.service.name",
    "sasl.mechanism",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
    "ssl.key.password",
)
"""Properties with the same name and meaning in librdkafka. Other properties tune Java's clients and are left out."""

PEM = "PEM"
TRUSTED = "the certificates in ssl.truststore.location must be a PEM file (ssl.truststore.type=PEM)"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConnection:
    """Bootstrap servers and properties. Its repr has no property: some are passwords."""

    bootstrap_servers: str
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def source_options(self) -> dict[str, str]:
        """The options of Spark's kafka source that say where the cluster is."""
        options = {f"kafka.{key}": value for key, value in self.properties}
        options["kafka.bootstrap.servers"] = self.bootstrap_servers
        return options

    def sink_options(self) -> dict[str, str]:
        """The options of Spark's kafka sink that say where the cluster is."""
        return self.source_options()

    def client_config(self) -> dict[str, str]:
        """The configuration of a client of confluent-kafka.

        Raises: JobError if librdkafka cannot read the key store or the trust store.
        """
        properties = dict(self.properties)
        config = {key: value for key, value in properties.items() if key in SAME_NAME}
        config["bootstrap.servers"] = self.bootstrap_servers
        config |= _login(properties)
        config |= _trust(properties)
        config |= _identity(properties)
        algorithm = properties.get("ssl.endpoint.identification.algorithm")
        if algorithm is not None:
            config["ssl.endpoint.identification.algorithm"] = algorithm or "none"
        return config

    def tool_config(self) -> ClientConfig:
        """The configuration of a client of `odradek.broker.tools`. Raises: JobError if a value is not valid."""
        from odradek.broker.tools.command.client_config import client_config
        from odradek.broker.tools.command.failures import CommandFailed

        properties = dict(self.properties)
        try:
            return client_config(self.bootstrap_servers, properties, client_id="spark-job", also=properties.keys())
        except CommandFailed as error:
            raise JobError(str(error)) from None


def _login(properties: Mapping[str, str]) -> dict[str, str]:
    """User and password, or the client of OAUTHBEARER, from `sasl.jaas.config`."""
    jaas_config = properties.get("sasl.jaas.config")
    if jaas_config is None:
        return {}
    from odradek.broker.security.sasl.jaas import parse_jaas_config
    from odradek.storage.config.config_def import ConfigError

    try:
        options = parse_jaas_config(jaas_config).options
    except ConfigError as error:  # its message has no value of the entry
        raise JobError(f"sasl.jaas.config: {error}") from None
    if properties.get("sasl.mechanism") == "OAUTHBEARER":
        names = {"clientId": "sasl.oauthbearer.client.id", "clientSecret": "sasl.oauthbearer.client.secret"}
        names["scope"] = "sasl.oauthbearer.scope"
        found = {names[key]: value for key, value in options.items() if key in names}
        return {"sasl.oauthbearer.method": "oidc"} | found
    names = {"username": "sasl.username", "password": "sasl.password"}
    return {names[key]: value for key, value in options.items() if key in names}


def _trust(properties: Mapping[str, str]) -> dict[str, str]:
    if "ssl.truststore.certificates" in properties:
        return {"ssl.ca.pem": properties["ssl.truststore.certificates"]}
    location = properties.get("ssl.truststore.location")
    if location is None:
        return {}
    if properties.get("ssl.truststore.type", "JKS").upper() != PEM:
        raise JobError(f"confluent-kafka reads no Java trust store: {TRUSTED}")
    return {"ssl.ca.location": location}


def _identity(properties: Mapping[str, str]) -> dict[str, str]:
    if "ssl.keystore.key" in properties:
        chain = properties.get("ssl.keystore.certificate.chain", "")
        return {"ssl.key.pem": properties["ssl.keystore.key"], "ssl.certificate.pem": chain}
    location = properties.get("ssl.keystore.location")
    if location is None:
        return {}
    kind = properties.get("ssl.keystore.type", "JKS").upper()
    if kind == PEM:  # one file holds both
        return {"ssl.key.location": location, "ssl.certificate.location": location}
    if kind == "PKCS12":
        password = properties.get("ssl.keystore.password")
        return {"ssl.keystore.location": location} | ({} if password is None else {"ssl.keystore.password": password})
    raise JobError("confluent-kafka reads no JKS key store: ssl.keystore.location must be a PEM or PKCS12 file")
