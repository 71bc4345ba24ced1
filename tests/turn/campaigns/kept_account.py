"""What a journal says of calls and questions, held against what really happened."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rune.records.approvals import PendingApprovalRecord
from rune.records.messages import ConversationMessageRecord
from rune.records.tools import PreparedCall, ToolResult
from rune.records.turns import TurnRecord
from rune.store.codec import decode_body
from rune.store.evidence_store import Evidence
from rune.store.order import Located
from rune.turn.change_book import UNDO


class Account:
    """Reads events in order; `faults` says in words what must never be."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.intents: dict[str, PreparedCall] = {}
        self.results: dict[str, ToolResult] = {}
        self.open_turns: set[str] = set()
        self._ended: set[str] = set()
        self._allowed: set[str] = set()
        self._decided: set[str] = set()
        self._asked: set[str] = set()
        self._calls: dict[str, str] = {}
        self._answered: set[tuple[str, str]] = set()
        self._told: set[str] = set()

    def take(self, events: Iterable[Located], evidence: Evidence) -> None:
        """Read what is new."""
        for _, envelope in events:
            body = decode_body(envelope, evidence)
            match envelope.event_type, body:
                case "turn.started", TurnRecord():
                    self.open_turns.add(body.id)
                case "turn.finished", TurnRecord():
                    self._expect(body.id not in self._ended, f"{body.id} ended twice")
                    self._ended.add(body.id)
                    self.open_turns.discard(body.id)
                case _, ConversationMessageRecord():
                    self._message(body)
                case "tool.intent", PreparedCall():
                    self._expect(body.id not in self.intents, f"{body.id} was about to act twice")
                    by_owner = envelope.authorization == "owner" and body.call.name in {"edit_file", UNDO}
                    allowed = by_owner or body.id in self._allowed
                    self._expect(allowed, f"{body.id} was about to act, and nobody allowed it")
                    self._expect(body.id not in self.results, f"{body.id} was about to act after its end")
                    self.intents[body.id] = body
                case "tool.result", ToolResult():
                    self._expect(body.id not in self.results, f"{body.id} ended twice")
                    self.results[body.id] = body
                case "approval.requested", PendingApprovalRecord():
                    self._asked.add(body.id)
                case "approval.decided", PendingApprovalRecord():
                    self._expect(body.id in self._asked and body.id not in self._decided, f"{body.id} decided twice")
                    self._decided.add(body.id)
                    self._allowed |= {call.id for call in body.calls if body.decision == "allow"}
                case _:
                    pass

    def _message(self, message: ConversationMessageRecord) -> None:
        if message.role == "assistant" and message.tool_calls:
            self._calls = {call.id: message.id for call in message.tool_calls}
        elif message.role == "tool":
            made = self._calls.get(message.tool_call_id)
            self._expect(made is not None, f"{message.id} is the result of no call before it")
            call = (made or "", message.tool_call_id)
            self._expect(call not in self._answered, f"{message.id} is a second result of {call}")
            self._answered.add(call)

    def unended(self) -> list[str]:
        """Return the calls that were about to act and have no result; an undo goes on when it is asked for again."""
        acted = (each.id for each in self.intents.values() if each.call.name != UNDO)
        return [each for each in acted if each not in self.results]

    def unknown(self) -> list[PreparedCall]:
        """Return the calls of which nobody knows whether they ran."""
        return [self.intents[each.id] for each in self.results.values() if each.outcome == "unknown"]

    def compare(self, effects: Path) -> None:
        """Hold the side effects against the journal."""
        tags = Counter(effects.read_text().split())
        commands = {
            each.call.arguments["command"].split("echo ")[1].split()[0]: each.id
            for each in self.intents.values()
            if each.call.name == "run_command"
        }
        for tag, times in tags.items():
            self._expect(times == 1, f"{tag} happened {times} times")
            self._expect(tag in commands, f"{tag} happened, and nothing says that it was about to")
        for tag, call_id in commands.items():
            result = self.results.get(call_id)
            if result is not None and result.outcome == "ok":
                self._expect(tags[tag] == 1, f"{tag} is said to have happened")

    def _expect(self, condition: bool, fault: str) -> None:
        if not condition:
            self.faults.append(fault)
