"""Which part failed, how badly, and whether it works again (spine.md, Failure semantics)."""

import logging
import threading
from typing import Literal, Protocol

import msgspec

from rune.host.clock import Clock
from rune.records.events import BackgroundFailed, CapabilityFailed
from rune.records.record import Record
from rune.records.times import rfc3339
from rune.text.storable import storable

# 0: the answer itself failed. 1: the turn went on without a contribution. 2: background work failed.
Tier = Literal[0, 1, 2]

TEXT_LIMIT = 300
# Of each subsystem the newest so many: a process that is never left must not grow.
RECOVERIES_KEPT = 20
_log = logging.getLogger(__name__)
# Until `setup_logging`, and without it, a record goes nowhere: logging's last resort is the terminal.
logging.getLogger("rune").addHandler(logging.NullHandler())


class EventSink(Protocol):
    """Takes notes that may become events: a bounded queue that a background task appends from."""

    def offer(self, event_type: str, body: Record, *, partition: str) -> None:
        """Take a note without waiting; may be called from any thread."""
        ...


class Masker(Protocol):
    """Takes secrets out of a text."""

    def __call__(self, text: str, /) -> str:
        """Return the text without them."""
        ...


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was damaged or cut off and is in order again: `what`, for a person; `at` is RFC 3339."""

    what: str
    at: str


class SubsystemHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One subsystem that failed, or was recovered, in this process. `failures` counts all of them, 0 when it only
    was recovered; `tier`, `last_error` (class and message), `context` and `last_seen` are those of the newest. Times
    are RFC 3339; `healthy_since` is None while it is broken. `recovered` are the newest recoveries, oldest first.
    """

    subsystem: str
    failures: int
    tier: Tier
    last_error: str
    context: str
    last_seen: str
    healthy_since: str | None
    recovered: tuple[Recovery, ...] = ()


class SubsystemHealthRegistry:
    """Counts failures, logs them, offers them as events and says when a person should be told.

    Nothing here raises, whatever is broken below: a log that cannot be written or a sink that fails
    becomes a failure of its own in the snapshot (`log`, `event_sink`, `masking`) and nothing else.
    May be used from any thread.
    """

    def __init__(self, clock: Clock, sink: EventSink | None, *, masker: Masker | None = None) -> None:
        self._clock = clock
        self._sink = sink
        self._masker = masker
        # Reentrant: a signal handler may report while the main thread does.
        self._mutex = threading.RLock()
        self._subsystems: dict[str, SubsystemHealth] = {}
        self._told: set[str] = set()
        self._within = threading.local()

    def record_failure(self, subsystem: str, error: BaseException, tier: Tier, context: str = "") -> bool:
        """Record one failure; `context` says in a few words during what. True when the caller should also
        tell the person: the first T0 or T1 of that subsystem in this session. The event of a T0,
        `turn.failed`, is the turn's own matter and not offered here.
        """
        name, message, about = type(error).__name__, self._clean(_text_of(error)), self._clean(context)
        tell = self._count(subsystem, f"{name}: {message}" if message else name, tier, about)
        # What logging or the sink reports while this very failure is being reported is counted, and that is all.
        if not getattr(self._within, "reporting", False):
            self._within.reporting = True
            try:
                self._log(subsystem, error, tier, about)
                self._offer(subsystem, name, message, tier, about)
            finally:
                self._within.reporting = False
        return tell

    def record_recovery(self, subsystem: str, what: str) -> None:
        """Record that something was damaged or cut off before and is in order again; `what` says it to a person."""
        now = self._now()
        fact = Recovery(what=self._clean(what), at=now)
        with self._mutex:
            known = self._subsystems.get(subsystem) or SubsystemHealth(
                subsystem=subsystem,
                failures=0,
                tier=2,
                last_error="",
                context="",
                last_seen=now,
                healthy_since=now,
            )
            kept = (*known.recovered, fact)[-RECOVERIES_KEPT:]
            self._subsystems[subsystem] = msgspec.structs.replace(known, recovered=kept)
        try:
            _log.info("recovered %s: %s", subsystem, fact.what)
        except Exception as broken:  # noqa: BLE001 - what was recovered counts, whatever is wrong with the log
            self._count("log", type(broken).__name__, 2, "")

    def record_success(self, subsystem: str) -> None:
        """Note that it works; of interest only after a failure, and cheap otherwise."""
        known = self._subsystems.get(subsystem)
        if known is None or known.healthy_since is not None:
            return
        now = self._now()
        with self._mutex:
            self._subsystems[subsystem] = msgspec.structs.replace(self._subsystems[subsystem], healthy_since=now)

    def is_failing(self, subsystem: str) -> bool:
        """Say whether its last failure was followed by no success yet."""
        known = self._subsystems.get(subsystem)
        return known is not None and known.healthy_since is None

    def snapshot(self) -> tuple[SubsystemHealth, ...]:
        """Return every subsystem that ever failed or was recovered in this process, by name."""
        with self._mutex:
            return tuple(self._subsystems[name] for name in sorted(self._subsystems))

    def _count(self, subsystem: str, error: str, tier: Tier, context: str) -> bool:
        now = self._now()
        with self._mutex:
            before = self._subsystems.get(subsystem)
            self._subsystems[subsystem] = SubsystemHealth(
                subsystem=subsystem,
                failures=(before.failures if before else 0) + 1,
                tier=tier,
                last_error=error,
                context=context,
                last_seen=now,
                healthy_since=None,
                recovered=before.recovered if before else (),
            )
            if tier == 2 or subsystem in self._told:  # noqa: PLR2004 - T2 is its name
                return False
            self._told.add(subsystem)
            return True

    def _log(self, subsystem: str, error: BaseException, tier: Tier, context: str) -> None:
        level = logging.ERROR if tier == 0 else logging.WARNING
        during = f" ({context})" if context else ""
        try:
            _log.log(level, "T%d %s%s", tier, subsystem, during, exc_info=error)
        except Exception as broken:  # noqa: BLE001 - the first error must not be masked by a broken log
            self._count("log", type(broken).__name__, 2, "")

    def _offer(self, subsystem: str, error: str, message: str, tier: Tier, context: str) -> None:
        if self._sink is None or tier == 0:
            return
        kind, event_type = (
            (CapabilityFailed, "capability.failed") if tier == 1 else (BackgroundFailed, "background.failed")
        )
        try:
            body = kind(subsystem=subsystem, error=error, message=message, context=context)
            self._sink.offer(event_type, body, partition="system")
        except Exception as broken:  # noqa: BLE001 - the first error must not be masked by a broken sink
            self._count("event_sink", type(broken).__name__, 2, "")

    def _clean(self, text: str) -> str:
        """Return it masked, storable and short."""
        if self._masker is not None:
            try:
                text = self._masker(text)
            except Exception as broken:  # noqa: BLE001 - as above; unmasked text must not get out either
                self._count("masking", type(broken).__name__, 2, "")
                text = "(not shown: masking failed)"
        return storable(text[:TEXT_LIMIT])

    def _now(self) -> str:
        try:
            return rfc3339(self._clock.now_ms())
        except Exception:  # noqa: BLE001 - a broken clock costs the time of the failure, not the failure
            return ""


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - an error that cannot be shown is still an error
        return f"(its text cannot be had: {type(broken).__name__})"
