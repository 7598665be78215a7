from __future__ import annotations

from odradek.broker.meters.broker_topic_stats import BrokerTopicMetrics, BrokerTopicStats
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import run_through


def append(stats: BrokerTopicStats, topic: str, messages: int, size: int) -> None:
    """As the replica manager does."""
    counters = stats.topics[topic]
    counters.total_produce_requests += 1
    counters.messages_in += messages
    counters.bytes_in += size


def sums(stats: BrokerTopicStats) -> BrokerTopicMetrics:
    total = BrokerTopicMetrics()
    run_through(stats.sum_up(total))
    return total


def test_each_event_counts_for_its_topic_and_for_all() -> None:
    stats = BrokerTopicStats()
    append(stats, "a", 10, 1000)
    stats.refused("a", is_failure=True, bytes_rejected=7)
    append(stats, "b", 1, 100)
    stats.asked_for(["b", "b"])
    stats.sent("b", 50)
    stats.converted_fetched("b", 3)
    stats.converted_produced("b", 4)
    a, b, both = stats.topics["a"], stats.topics["b"], sums(stats)
    assert (a.messages_in, a.bytes_in, a.total_produce_requests, a.failed_produce_requests) == (10, 1000, 2, 1)
    assert (a.bytes_rejected, both.bytes_rejected) == (7, 7)
    assert (b.total_fetch_requests, b.bytes_out) == (2, 50)
    assert (both.messages_in, both.bytes_in, both.bytes_out, both.total_produce_requests) == (11, 1100, 50, 3)
    assert both.fetch_message_conversions == b.fetch_message_conversions == 3
    assert both.produce_message_conversions == b.produce_message_conversions == 4


def test_the_counters_of_a_forgotten_topic_go_and_those_of_all_topics_stay() -> None:
    stats = BrokerTopicStats()
    append(stats, "a", 10, 1000)
    append(stats, "b", 1, 100)
    stats.produce_expired(TopicPartition("a", 1))
    stats.produce_expired(TopicPartition("c", 0))
    assert stats.counted_topics == {"a", "b", "c"}
    run_through(stats.forget_topics({"a", "c"}))
    assert stats.counted_topics == set(stats.topics) == {"b"}
    assert sums(stats).messages_in == 11
    assert stats.expired_produces == 2


def test_a_topic_that_comes_between_two_steps_disturbs_no_sum() -> None:
    stats = BrokerTopicStats()
    for topic in "abc":
        append(stats, topic, 1, 1)
    total = BrokerTopicMetrics()
    forgetting, adding = stats.forget_topics({"a", "b"}), stats.sum_up(total)
    next(forgetting)
    next(adding)
    append(stats, "new", 1, 1)
    run_through(forgetting)
    run_through(adding)
    assert total.messages_in == 3
