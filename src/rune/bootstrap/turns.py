"""Connects what runs turns: prompts, models, tools, questions, and the operator in front of them."""

from collections.abc import Mapping
from functools import partial

from rune.bootstrap.core import Core
from rune.bootstrap.scoring import Scoring, count_calls, protocol_of
from rune.context.broker import ContextBroker
from rune.context.contributors import standard_contributors
from rune.context.window import WindowBook
from rune.host.machine import available_memory
from rune.models.openai_compatible.address import KEY_VARIABLE
from rune.models.router import Router
from rune.orchestration.approvals import Approvals
from rune.orchestration.permissions import Permissions
from rune.store.approvals import ApprovalRepository
from rune.store.intents import IntentRepository
from rune.store.rules import RuleRepository
from rune.store.turns import TurnRepository
from rune.text.tokens import estimate
from rune.tools.places import own_folders
from rune.tools.registry import Toolbox
from rune.tools.undo import UndoStore
from rune.turn.acting_out import Acting
from rune.turn.asking import Asking
from rune.turn.changes import Changes
from rune.turn.moves import MoveBook
from rune.turn.operator import RuneOperator
from rune.turn.own_commands import OwnCommands
from rune.turn.own_shell import OwnShell
from rune.turn.pilot import Pilot
from rune.turn.prompting import Prompts
from rune.turn.questions import Questions
from rune.turn.recorder import TurnRecorder
from rune.turn.rounds import RoundRecorder
from rune.turn.runtime import LocalToolRuntime
from rune.turn.selection import ModelSelection
from rune.turn.session import Sessions
from rune.turn.tool_round import ToolRound
from rune.turn.trust import FolderTrust, ProjectInstructions
from rune.turn.workplaces import Workplaces


class Turns:
    """What runs turns on one home, each part once."""

    def __init__(self, core: Core, environ: Mapping[str, str], toolbox: Toolbox) -> None:
        self.toolbox = toolbox
        self.results = IntentRepository(core.engine)
        self.turns = TurnRepository(core.engine)
        self.approval_book = ApprovalRepository(core.ledger, core.engine)
        self.approvals = Approvals(self.approval_book, core.clock, core.ids)
        self.permissions = Permissions(RuleRepository(core.ledger, core.engine))
        self.undo = UndoStore(core.home.undo)
        self.workplaces = Workplaces(
            own=own_folders(core.home),
            environ=environ,
            masker=core.masker,
            undo=self.undo,
            evidence=core.evidence,
            results=self.results,
        )
        self.changes = Changes(
            results=self.results,
            turns=self.turns,
            ledger=core.ledger,
            undo=self.undo,
            ids=core.ids,
            clock=core.clock,
            workplace=self.workplaces.at,
        )
        self.recorder = TurnRecorder(
            ledger=core.ledger,
            evidence=core.evidence,
            conversations=core.conversations,
            tasks=core.tasks,
            clock=core.clock,
            ids=core.ids,
            estimate=estimate,
            failures=core.failures,
            publish=core.trace_file.append,
        )
        self.rounds = RoundRecorder(
            ledger=core.ledger,
            evidence=core.evidence,
            conversations=core.conversations,
            recorder=self.recorder,
            clock=core.clock,
            ids=core.ids,
            estimate=estimate,
        )
        self.sessions = Sessions(
            leases=core.leases,
            ledger=core.ledger,
            conversations=core.conversations,
            tasks=core.tasks,
            turns=self.turns,
            traces=core.traces,
            approvals=self.approval_book,
            evidence=core.evidence,
            failures=core.failures,
        )

    def own_shell(self, core: Core, environ: Mapping[str, str]) -> OwnShell:
        """Return what runs the person's own commands: with their own environment, but without Rune's keys."""
        withheld = (KEY_VARIABLE, *(server.key_env for server in core.settings.model.servers if server.key_env))
        commands = OwnCommands(
            ledger=core.ledger,
            evidence=core.evidence,
            ids=core.ids,
            masker=core.masker,
            environ=environ,
            withheld=withheld,
        )
        return OwnShell(self.sessions, commands)

    def operator(
        self, core: Core, router: Router, trust: FolderTrust, windows: WindowBook, scoring: Scoring
    ) -> RuneOperator:
        """Return the one door to all of it."""
        instructions = ProjectInstructions(trust, core.failures, core.masker.mask)
        acting = Acting(self.rounds, core.clock, estimate)
        questions = Questions(
            approvals=self.approvals,
            repository=self.approval_book,
            permissions=self.permissions,
            turns=self.turns,
            recorder=self.recorder,
            rounds=self.rounds,
            acting=acting,
            evidence=core.evidence,
            failures=core.failures,
        )
        runtime = self._runtime(core, instructions, questions, acting)
        selection = ModelSelection(
            router=router,
            windows=windows,
            memory=available_memory,
            protocol=partial(protocol_of, scoring.scorecard, core.failures),
            count=partial(count_calls, scoring.scorecard),
            failures=core.failures,
        )
        return RuneOperator(
            settings=lambda: core.settings,
            sessions=self.sessions,
            selection=selection,
            recorder=self.recorder,
            pilot=Pilot(
                selection=selection,
                recorder=self.recorder,
                runtime=runtime,
                questions=questions,
                unread=instructions.unread,
                failures=core.failures,
                mask=core.masker.mask,
            ),
            approvals=self.approvals,
            changes=self.changes,
            conversations=core.conversations,
            tasks=core.tasks,
            mask=core.masker.mask,
            clock=core.clock,
            ids=core.ids,
            failures=core.failures,
        )

    def _runtime(
        self, core: Core, instructions: ProjectInstructions, questions: Questions, acting: Acting
    ) -> LocalToolRuntime:
        return LocalToolRuntime(
            prompts=Prompts(
                broker=ContextBroker(standard_contributors(), estimate, core.failures.degraded),
                recorder=self.recorder,
                toolbox=self.toolbox,
                project=instructions.files,
            ),
            asking=Asking(clock=core.clock, ids=core.ids, mask=core.masker.mask),
            moves=MoveBook(),
            tool_round=ToolRound(toolbox=self.toolbox, permissions=self.permissions, rounds=self.rounds, acting=acting),
            rounds=self.rounds,
            questions=questions,
            workplaces=self.workplaces,
        )
