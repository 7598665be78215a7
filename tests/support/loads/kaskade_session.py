"""A session with the terminal console kaskade, by its keys. It runs where kaskade is installed: `host:port TOPIC`.

Prints JSON: the rows of its tables, after each step of the session.
"""

from __future__ import annotations

import asyncio
import json
import sys

from kaskade.admin import KaskadeAdmin  # type: ignore[import-not-found]
from textual.widgets import DataTable, Input, TabbedContent  # type: ignore[import-not-found]

TIMEOUT_S = 20
SIZE = (160, 50)


async def session(bootstrap: str, topic: str) -> dict[str, object]:
    app = KaskadeAdmin({"bootstrap.servers": bootstrap})
    seen: dict[str, object] = {}
    async with app.run_test(size=SIZE) as pilot:
        seen["topics"] = await rows(app, "#topics-table", topic)
        await select(app, pilot, topic)
        await pilot.press("n")
        await fill(app, pilot, {"#name": f"{topic}-made", "#partitions": "3", "#retention": "3600000"})
        await pilot.press("ctrl+s")
        seen["with the new topic"] = await rows(app, "#topics-table", f"{topic}-made")
        await select(app, pilot, f"{topic}-made")
        await pilot.press("e")
        await fill(app, pilot, {"#partitions": "4", "#retention": "7200000"})
        await pilot.press("ctrl+s")
        seen["with more partitions"] = await rows(app, "#topics-table", f"{topic}-made", " 4")
        await select(app, pilot, topic)
        await pilot.press("enter")
        await until(lambda: len(app.screen.query(TabbedContent)) > 0)
        await pilot.pause()
        for pane in ("partitions", "configurations", "groups", "group-offsets", "group-members"):
            app.screen.query_one(TabbedContent).active = pane
            await pilot.pause()
            seen[pane] = texts(app.screen.query_one(f"#{pane}").query_one(DataTable))
        await pilot.press("escape")
        await select(app, pilot, f"{topic}-made")
        await pilot.press("ctrl+d")
        await fill(app, pilot, {"#topic-confirmation": f"{topic}-made"})
        await pilot.press("enter")
        await until(lambda: not [row for row in texts(table(app)) if row[0] == f"{topic}-made"])
        seen["at the end"] = texts(table(app))
    return seen


def table(app: KaskadeAdmin) -> DataTable:
    return app.screen_stack[0].query_one("#topics-table")


async def until(is_done: object) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not is_done():  # type: ignore[operator]
            await asyncio.sleep(0.05)


async def rows(app: KaskadeAdmin, where: str, topic: str, text: str = "") -> list[list[str]]:
    """The rows, when the topic is among them with this text in its row."""

    def is_there() -> bool:
        return any(row[0] == topic and text in " ".join(["", *row[1:]]) for row in texts(table(app)))

    await until(is_there)
    return texts(table(app))


async def select(app: KaskadeAdmin, pilot: object, topic: str) -> None:
    await until(lambda: len(app.screen_stack) == 1)
    names = [row[0] for row in texts(table(app))]
    table(app).focus()
    table(app).move_cursor(row=names.index(topic))
    await pilot.pause()  # type: ignore[attr-defined]


async def fill(app: KaskadeAdmin, pilot: object, values: dict[str, str]) -> None:
    await until(lambda: len(app.screen_stack) > 1 and len(app.screen.query(Input)) > 0)
    for where, value in values.items():
        app.screen.query_one(where, Input).value = value
    app.screen.query_one(where, Input).focus()
    await pilot.pause()  # type: ignore[attr-defined]


def texts(found: DataTable) -> list[list[str]]:
    return [[str(cell) for cell in found.get_row(key)] for key in found.rows]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(session(*sys.argv[1:3]))))
