from __future__ import annotations

import pytest

from odradek.broker.security.authorizer.ports import Action, Authorizer
from odradek.controller.model.acls import AclOperation, ResourceType


def test_a_class_that_leaves_a_question_open_is_no_authorizer() -> None:
    class WithoutAnswers(Authorizer):
        pass

    with pytest.raises(TypeError, match="authorize"):
        WithoutAnswers()  # type: ignore[abstract]


def test_an_action_is_logged_unless_the_handler_says_otherwise() -> None:
    action = Action(AclOperation.READ, ResourceType.TOPIC, "t")
    assert (action.resource_reference_count, action.log_if_allowed, action.log_if_denied) == (1, True, True)
