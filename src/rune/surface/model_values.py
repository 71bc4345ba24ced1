"""What screens show about models beyond their list, as plain values: nothing of a transport in them."""

import msgspec

from rune.records.models import ActionProtocol, ProbeOutcome
from rune.surface.rows import ModelRow


class ModelDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of one model; texts may hold foreign words.

    `where` says where it runs and why that counts as local or remote. `window` is what Rune will ask for, in tokens,
    and `window_why` the reason; a model that is loaded may have another one in force (`row.loaded_window`).
    `protocol_why` says in a few words on what `row.protocol` rests. `probe` is the table of the last probe, empty until
    there was one. `valid`, `repaired`, `failed` count the tool calls seen so far.
    """

    row: ModelRow
    where: str
    family: str
    digest: str
    window: int
    window_why: str
    protocol_why: str
    probe: tuple[ProbeOutcome, ...] = ()
    valid: int = 0
    repaired: int = 0
    failed: int = 0


class PullRow(msgspec.Struct, frozen=True, kw_only=True):
    """How far fetching `model` is. `status` is what the server is doing, in its own words (foreign text).

    `done` and `total` are bytes over all parts that are known by now; None before there is one. `bytes_per_second` is
    what came over the last seconds, `seconds_left` what that makes of the rest; None until both can be told.
    `finished`: this is the last one, and the model is there.
    """

    model: str
    status: str
    done: int | None = None
    total: int | None = None
    bytes_per_second: float | None = None
    seconds_left: float | None = None
    finished: bool = False


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is gone from its server's disk. `freed` is bytes at most (a part may be another model's as well),
    None when its size was not known; it is 0 when the models `shared_with` are the same weights under another name.
    """

    model: str
    provider: str
    freed: int | None
    shared_with: tuple[str, ...] = ()


class ProbeRow(msgspec.Struct, frozen=True, kw_only=True):
    """How far a probe is: `done` of `total` tasks have an outcome; `task` under `protocol` is what this row is about.

    `outcome` None: the task begins now. `kept` is the protocol that the model is used with from now on, and the last
    row alone has it.
    """

    done: int
    total: int
    task: str
    protocol: ActionProtocol
    outcome: ProbeOutcome | None = None
    kept: ActionProtocol | None = None


class Arrivals(msgspec.Struct, frozen=True, kw_only=True):
    """What can be asked now, and what changed since the value before; names as `/model` takes them.

    `first`: there was none before, so `came` and `went` are empty. `came` and `went` leave the stand-in out. `answers`
    is the model that would answer a new conversation now ("": none), `stand_in` whether that is the small one.
    `unseen` says, a sentence each, which servers do not answer; `serving` whether a server is there at all, the
    embedded worker left out.
    """

    first: bool
    models: tuple[str, ...]
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    answers: str = ""
    stand_in: bool = False
    unseen: tuple[str, ...] = ()
    serving: bool = False
