"""A process that takes back the last turn of a conversation, to be killed: `python -m ... HOME CONVERSATION`."""

import asyncio
import sys
from pathlib import Path

from rune.tools.executors.write_file import WriteFile
from tests.turn.rig import rig


async def main(home: Path, conversation_id: str) -> None:
    async with rig(home, (), tools=[WriteFile()]) as it:
        await it.operator.undo(conversation_id)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
