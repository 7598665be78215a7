"""A reader is woken once, and may subscribe again while it is woken."""

from __future__ import annotations

from odradek.broker.partition.partition_news import PartitionNews


class Reader:
    def __init__(self, news: PartitionNews, *, asks_again: bool = False) -> None:
        self.news = news
        self.told = 0
        self.asks_again = asks_again
        news.subscribe(self)

    def has_news(self) -> None:
        self.told += 1
        if self.asks_again:
            self.news.subscribe(self)


def test_each_reader_is_woken_once() -> None:
    news = PartitionNews()
    first, second = Reader(news), Reader(news)
    news.announce()
    news.announce()
    assert (first.told, second.told, len(news)) == (1, 1, 0)


def test_a_reader_that_unsubscribed_is_not_woken() -> None:
    news = PartitionNews()
    first, second = Reader(news), Reader(news)
    news.unsubscribe(first)
    news.unsubscribe(first)
    news.announce()
    assert (first.told, second.told) == (0, 1)


def test_a_reader_that_subscribes_while_it_is_woken_is_woken_by_the_next_change() -> None:
    news = PartitionNews()
    reader = Reader(news, asks_again=True)
    news.announce()
    assert (reader.told, len(news)) == (1, 1)
