"""Has a conversation that another Rune writes followed here, until it is free."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from rune.errors import RuneError
from rune.surface.views import Views

# Of the looks at the journal, four a second, each so manieth also looks who has the conversation open.
_LOOKS_AT_HOLDER: Final = 3


class Onlooker:
    """Follows one conversation at a time, as long as it is `wanted`.

    `reread` is called after something was written to it, `freed` when nobody else has it open any more, and `failed`
    when it cannot be followed further. While nothing is written, only the sizes of the journal's files are looked at.
    """

    def __init__(
        self,
        views: Views,
        *,
        wanted: Callable[[str], bool],
        reread: Callable[[str], Awaitable[None]],
        freed: Callable[[str], Awaitable[None]],
        failed: Callable[[RuneError], None],
    ) -> None:
        self._views = views
        self._wanted = wanted
        self._reread = reread
        self._freed = freed
        self._failed = failed
        self._followed = ""
        self._task: asyncio.Task[None] | None = None

    def follow(self, conversation_id: str) -> None:
        """Follow this one from now on, unless that is done already."""
        running = self._task is not None and not self._task.done()
        if running and self._followed == conversation_id:
            return
        if self._task is not None:
            self._task.cancel()
        self._followed = conversation_id
        self._task = asyncio.create_task(self._run(conversation_id), name=f"look on {conversation_id}")

    async def close(self) -> None:
        """Follow nothing any more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, identity: str) -> None:
        try:
            await self._look_on(identity)
        except RuneError as error:
            self._failed(error)

    async def _look_on(self, identity: str) -> None:
        news, looks = True, 0  # something may have been written before the following begins
        async with contextlib.aclosing(self._views.follow(limit=1)) as pieces:
            async for piece in pieces:
                if not self._wanted(identity):
                    return
                news = news or any(each.partition_key == identity for each in piece)
                if piece:
                    continue  # more may be on its way: all of it is read once
                if news:
                    news = False
                    await self._reread(identity)
                looks += 1
                if looks % _LOOKS_AT_HOLDER == 0 and await self._views.holder(identity) is None:
                    await self._freed(identity)
