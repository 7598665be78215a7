from __future__ import annotations

import pickle

from odradek.broker.faults.faults import RuleStatus
from odradek.broker.faults.record import FaultRecord
from odradek.broker.faults.rules.rule_texts import RuleError
from odradek.testing import Broker
from odradek.testing.node.questions import fault_questions
from odradek.testing.node.questions.questions import QUESTIONS


def test_every_question_is_registered() -> None:
    for name in ("add_fault", "remove_fault", "wait_fault", "replay_difference", "fault_record"):
        assert QUESTIONS[name] is getattr(fault_questions, name)


def test_answers_and_errors_can_be_sent_between_processes() -> None:
    with Broker() as broker:
        number = broker.ask("add_fault", plain={"action": "drop", "client_id": "nobody"})
        status = broker.ask("fault_status", number=number)
        assert isinstance(status, RuleStatus)
        assert pickle.loads(pickle.dumps(status)) == status
        assert broker.ask("wait_fault", number=number, times=1, timeout_s=0.01) == status
        assert broker.ask("fault_events", number=number) == []
        assert broker.ask("fault_record") == FaultRecord()
        assert broker.ask("replay_difference") == (None, [])
    error = pickle.loads(pickle.dumps(RuleError("code", "is missing")))
    assert (error.key, error.reason, str(error)) == ("code", "is missing", "code: is missing")
