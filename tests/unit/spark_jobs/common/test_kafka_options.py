"""One cluster in the words of Spark, of librdkafka and of the project's own tools."""

from __future__ import annotations

import pytest

from spark_jobs.common.job import JobError
from spark_jobs.common.kafka_options import KafkaConnection

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def connection(**properties: str) -> KafkaConnection:
    named = ((name.replace("_", "."), value) for name, value in properties.items())
    return KafkaConnection(bootstrap_servers="a:1,b:2", properties=tuple(named))


def test_spark_takes_the_properties_as_they_are() -> None:
    here = connection(security_protocol="SASL_SSL", max_poll_records="5")
    expected = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.max.poll.records": "5",
        "kafka.bootstrap.servers": "a:1,b:2",
    }
    assert here.source_options() == expected
    assert here.sink_options() == expected


def test_a_connection_shows_no_property() -> None:
    assert repr(connection(sasl_jaas_config="canary")) == "KafkaConnection(bootstrap_servers='a:1,b:2')"


def test_a_client_gets_its_login_from_the_jaas_entry() -> None:
    here = connection(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_jaas_config=f'{SCRAM} username="a" password="b=\\"c";',
        max_poll_records="5",
    )
    assert here.client_config() == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "a",
        "sasl.password": 'b="c',
    }


def test_a_client_of_oauthbearer_asks_the_endpoint_for_tokens() -> None:
    here = connection(
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url="http://x/token",
        sasl_jaas_config='X required clientId="i" clientSecret="s" scope="o" other="p";',
    )
    assert here.client_config() == {
        "bootstrap.servers": "a:1,b:2",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "http://x/token",
        "sasl.oauthbearer.client.id": "i",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "o",
    }


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (
            {"ssl_truststore_type": "PEM", "ssl_truststore_location": "ca.pem"},
            {"ssl.ca.location": "ca.pem"},
        ),
        ({"ssl_truststore_certificates": "-----BEGIN"}, {"ssl.ca.pem": "-----BEGIN"}),
        (
            {"ssl_keystore_type": "PEM", "ssl_keystore_location": "me.pem", "ssl_key_password": "p"},
            {"ssl.key.location": "me.pem", "ssl.certificate.location": "me.pem", "ssl.key.password": "p"},
        ),
        (
            {"ssl_keystore_key": "KEY", "ssl_keystore_certificate_chain": "CERT"},
            {"ssl.key.pem": "KEY", "ssl.certificate.pem": "CERT"},
        ),
        (
            {"ssl_keystore_type": "PKCS12", "ssl_keystore_location": "me.p12", "ssl_keystore_password": "p"},
            {"ssl.keystore.location": "me.p12", "ssl.keystore.password": "p"},
        ),
        ({"ssl_endpoint_identification_algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        ({"ssl_endpoint_identification_algorithm": "https"}, {"ssl.endpoint.identification.algorithm": "https"}),
    ],
)
def test_a_client_gets_the_keys_of_tls(properties: dict[str, str], expected: dict[str, str]) -> None:
    assert connection(**properties).client_config() == {"bootstrap.servers": "a:1,b:2"} | expected


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"ssl_truststore_location": "trust.jks"}, "confluent-kafka reads no Java trust store"),
        ({"ssl_keystore_location": "key.jks"}, "confluent-kafka reads no JKS key store"),
        ({"sasl_jaas_config": 'X required password="canary"'}, "sasl.jaas.config: JAAS config entry not terminated"),
    ],
)
def test_what_a_client_cannot_read_is_refused_without_values(properties: dict[str, str], message: str) -> None:
    with pytest.raises(JobError, match=message) as refused:
        connection(**properties).client_config()
    assert "canary" not in str(refused.value)


def test_the_tools_read_the_keys_that_they_know(capsys: pytest.CaptureFixture[str]) -> None:
    config = connection(request_timeout_ms="1000", max_poll_records="5").tool_config()
    assert (config.bootstrap, config.request_timeout_ms) == ("a:1,b:2", 1_000)
    assert capsys.readouterr().err == "", "keys of other clients need no warning"
    with pytest.raises(JobError, match=r"Invalid value x for configuration request\.timeout\.ms"):
        connection(request_timeout_ms="x").tool_config()
