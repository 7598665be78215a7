"""Attempts to be somebody else: false credentials, and requests of a logged-in client that are not its to make.

Each attempt must be refused, by the error of Apache Kafka: a false login by SASL_AUTHENTICATION_FAILED and the end of
its connection, a request by the error of the right that is missing. `Attempts` draws them at random.
"""

from __future__ import annotations

import random
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import Any, Final

from odradek.broker.security.sasl.plain import PlainSaslClient
from odradek.broker.security.sasl.ports import SaslClient
from odradek.broker.security.sasl.scram import ScramSaslClient
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from tests.support.loads.hostile.forged_replica_ids import Topics, forged_requests
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import batch, build
from tests.support.wire.sasl_client import authenticate, handshake, log_in

TOPIC: Final = "shared"
"""Everybody may write to it and read it."""
OTHERS: Final = "others"
"""A group and a transactional id that the client has no rights for."""
PASSWORDS: Final = {"alice": "canary-of-alice", "mallory": "canary-of-mallory"}
SCRAM: Final = "SCRAM-SHA-256"
SCRAM_TYPES: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
CLUSTER: Final = {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
GROUP: Final = {ErrorCode.GROUP_AUTHORIZATION_FAILED}
TRANSACTION: Final = {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
TOPIC_REFUSED: Final = {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
OF_BROKERS_SHARE: Final = 0.5
"""Of the forged requests."""
PARTITION: Final = {"partition_index": 0}
PRODUCER: Final = {"producer_id": 1, "producer_epoch": 0}
LOGINS_BETWEEN: Final = 50
"""After so many attempts the client of them begins anew, and the rightful user logs in."""


def requests_of_others(rng: random.Random) -> Iterator[tuple[Request, int, Set[ErrorCode]]]:
    """(request, version, the only errors it may be answered with): transactions, groups and rights of others. Those
    with ids of brokers are in `forged_replica_ids`.
    """
    records = batch(b"v", is_transactional=True, base_sequence=0, **PRODUCER)
    for transactional_id in (OTHERS, None):
        data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}]
        produce = build(ApiKey.PRODUCE, acks=1, timeout_ms=1000, transactional_id=transactional_id, topic_data=data)
        yield produce, 9, TRANSACTION
    yield build(ApiKey.INIT_PRODUCER_ID, transactional_id=OTHERS, transaction_timeout_ms=1000), 4, TRANSACTION
    named = {"v3_and_below_transactional_id": OTHERS, "v3_and_below_producer_id": 1, "v3_and_below_producer_epoch": 0}
    added = build(ApiKey.ADD_PARTITIONS_TO_TXN, **named, v3_and_below_topics=[{"name": TOPIC, "partitions": [0]}])
    yield added, 3, TRANSACTION
    transaction = {"transactional_id": OTHERS, **PRODUCER}
    yield build(ApiKey.ADD_OFFSETS_TO_TXN, **transaction, group_id=OTHERS), 3, TRANSACTION
    yield build(ApiKey.END_TXN, **transaction, committed=rng.random() < 0.5), 3, TRANSACTION
    committed = [{"name": TOPIC, "partitions": [{**PARTITION, "committed_offset": 7}]}]
    yield build(ApiKey.TXN_OFFSET_COMMIT, **transaction, group_id=OTHERS, topics=committed), 3, TRANSACTION
    yield build(ApiKey.OFFSET_COMMIT, group_id=OTHERS, topics=committed), 7, GROUP
    yield build(ApiKey.OFFSET_FETCH, group_id=OTHERS, topics=None), 6, GROUP
    protocols = [{"name": "range", "metadata": b""}]
    joining = build(
        ApiKey.JOIN_GROUP, group_id=OTHERS, session_timeout_ms=10_000, protocol_type="consumer", protocols=protocols
    )
    yield joining, 5, GROUP
    member = {"group_id": OTHERS, "member_id": "m"}
    yield build(ApiKey.SYNC_GROUP, **member, generation_id=1), 3, GROUP
    yield build(ApiKey.HEARTBEAT, **member, generation_id=1), 3, GROUP
    yield build(ApiKey.LEAVE_GROUP, **member), 2, GROUP
    yield build(ApiKey.DESCRIBE_GROUPS, groups=[OTHERS]), 4, GROUP
    yield build(ApiKey.DELETE_GROUPS, groups_names=[OTHERS]), 2, GROUP
    acl = {"resource_type": 2, "resource_name": "*", "principal": "User:mallory", "host": "*", "operation": 2}
    creation = {**acl, "resource_pattern_type": 3, "permission_type": 3}
    yield build(ApiKey.CREATE_ACLS, creations=[creation]), 2, CLUSTER
    yield build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, upsertions=[scram_credential("alice")]), 0, CLUSTER
    yield build(ApiKey.DELETE_TOPICS, topic_names=[TOPIC], timeout_ms=1000), 5, TOPIC_REFUSED


def scram_credential(user: str, mechanism: str = SCRAM) -> dict[str, object]:
    """For an AlterUserScramCredentials."""
    salted = SCRAM_MECHANISMS[mechanism].salted_password(PASSWORDS[user].encode(), b"salt", 4096)
    return {
        "name": user,
        "mechanism": SCRAM_TYPES[mechanism],
        "iterations": 4096,
        "salt": b"salt",
        "salted_password": salted,
    }


def errors_in(value: object) -> set[int]:
    """Every error code of an answer, as deep as it is."""
    found: set[int] = set()
    for name in getattr(value, "__slots__", ()):
        field = getattr(value, name, None)
        if name.endswith("error_code") and isinstance(field, int):
            found.add(field)
        for item in field if isinstance(field, list) else (field,):
            found |= errors_in(item)
    return found


class Attempts:
    """Random attempts against the SASL listener of a broker."""

    def __init__(
        self,
        broker: OdradekBroker,
        port: int,
        rng: random.Random,
        tls: ssl.SSLContext | None = None,
        scram: str = SCRAM,
    ) -> None:
        """`tls`: the listener has TLS. `scram`: the mechanism of attempts with SCRAM."""
        self._host, self._port, self._rng, self._tls, self._scram_name = broker.host, port, rng, tls, scram
        with RawClient(broker.host, broker.port) as client:
            answer: Any = client.call(build(ApiKey.METADATA, topics=[{"name": TOPIC}]), 12)
        self._topics = Topics(TOPIC, answer.topics[0].topic_id, OTHERS)
        self._replayed = b""
        """The last message of a SCRAM exchange that went well."""
        self.made: Counter[str] = Counter()
        self._ways: tuple[Callable[[], None], ...] = (
            self._wrong_password,
            self._unknown_user,
            self._authorization_id_of_another,
            self._wrong_scram_password,
            self._foreign_nonce,
            self._replayed_proof,
            self._password_as_token,
            self._forged_request,
            self._forged_request,
            self._forged_request,
            self._forged_request,
        )
        self._mallory: RawClient | None = None

    def _connection(self) -> RawClient:
        return RawClient(self._host, self._port, tls=self._tls)

    def make(self, count: int) -> None:
        """So many. AssertionError: one was not refused, or a rightful login was."""
        try:
            for number in range(count):
                if not number % LOGINS_BETWEEN:
                    self.log_in_rightfully()
                self._rng.choice(self._ways)()
        finally:
            self.close()

    def close(self) -> None:
        if self._mallory is not None:
            self._mallory.close()
            self._mallory = None

    def log_in_rightfully(self) -> None:
        self.close()
        sasl = self._scram("alice", PASSWORDS["alice"])
        with self._connection() as client:
            handshake(client, self._scram_name)
            first = sasl.evaluate_challenge(b"")
            assert first is not None
            final = sasl.evaluate_challenge(authenticate(client, first).auth_bytes)
            assert final is not None
            assert authenticate(client, final).error_code == ErrorCode.NONE
            self._replayed = final
        self.made["rightful login"] += 1

    @contextmanager
    def _refused(self, name: str) -> Iterator[tuple[RawClient, list[Any]]]:
        """A connection, and a list for the answer that must be a refusal; then the connection is closed."""
        answers: list[Any] = []
        with self._connection() as client:
            yield client, answers
            assert answers, name
            assert answers[0].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED, (name, answers)
            assert not answers[0].auth_bytes, name
            try:
                client.call(build(ApiKey.METADATA, topics=None), 1)
            except (ConnectionClosedError, OSError):
                self.made[name] += 1
                return
            raise AssertionError(f"{name}: the connection is open")

    def _logs_in(self, name: str, mechanism: str, sasl: SaslClient) -> None:
        with self._refused(name) as (client, answers):
            answers.append(log_in(client, mechanism, sasl))

    def _wrong_password(self) -> None:
        wrong = self._rng.choice((PASSWORDS["mallory"], PASSWORDS["alice"][:-1], PASSWORDS["alice"] + "x", "x"))
        self._logs_in("wrong password", "PLAIN", PlainSaslClient("alice", wrong))

    def _unknown_user(self) -> None:
        self._logs_in("unknown user", "PLAIN", PlainSaslClient(f"user{self._rng.random()}", PASSWORDS["alice"]))

    def _authorization_id_of_another(self) -> None:
        with self._refused("authorization id of another") as (client, answers):
            handshake(client, "PLAIN")
            message = b"\0".join((b"alice", b"mallory", PASSWORDS["mallory"].encode()))
            answers.append(authenticate(client, message))

    def _scram(self, user: str, password: str, *, uses_token: bool = False) -> ScramSaslClient:
        nonce = f"{self._rng.randrange(2**64):x}"
        return ScramSaslClient(SCRAM_MECHANISMS[self._scram_name], user, password, nonce, uses_token=uses_token)

    def _wrong_scram_password(self) -> None:
        user = self._rng.choice(("alice", "nobody"))
        self._logs_in("wrong password with SCRAM", self._scram_name, self._scram(user, PASSWORDS["mallory"]))

    def _password_as_token(self) -> None:
        """As the HMAC of a delegation token."""
        self._logs_in(
            "password as a token", self._scram_name, self._scram("alice", PASSWORDS["alice"], uses_token=True)
        )

    def _final(self, name: str, change: Callable[[bytes], bytes]) -> None:
        sasl = self._scram("alice", PASSWORDS["alice"])
        with self._refused(name) as (client, answers):
            handshake(client, self._scram_name)
            first = sasl.evaluate_challenge(b"")
            assert first is not None
            final = sasl.evaluate_challenge(authenticate(client, first).auth_bytes)
            assert final is not None
            answers.append(authenticate(client, change(final)))

    def _foreign_nonce(self) -> None:
        """The right password, and a nonce that the broker has not made."""
        self._final("foreign nonce", lambda final: final.replace(b",r=", b",r=" + b"%x" % self._rng.randrange(2**32)))

    def _replayed_proof(self) -> None:
        self._final("replayed proof", lambda _: self._replayed)

    def _forged_request(self) -> None:
        if self._mallory is None:
            self._mallory = self._connection()
            answer = log_in(self._mallory, "PLAIN", PlainSaslClient("mallory", PASSWORDS["mallory"]))
            assert answer.error_code == ErrorCode.NONE
        of_brokers = self._rng.random() < OF_BROKERS_SHARE
        forged = forged_requests(self._topics, self._rng) if of_brokers else requests_of_others(self._rng)
        request, version, expected = self._rng.choice(list(forged))
        answer = self._mallory.call(request, version)
        assert errors_in(answer) - {ErrorCode.NONE} == expected, (request, version, answer)
        self.made[type(request).__name__] += 1
