from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from odradek.broker.metrics.labels import labelled


def test_labels_are_in_the_order_of_the_arguments() -> None:
    assert labelled(topic="t", partition=3) == 'topic="t",partition="3"'
    assert labelled(class_="x") == 'class="x"'


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_value_comes_back_from_the_parser(value: str) -> None:
    (family,) = text_string_to_metric_families(f"m{{{labelled(name=value)}}} 1\n")
    assert family.samples[0].labels == {"name": value}
