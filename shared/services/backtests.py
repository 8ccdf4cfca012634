"""What a draft would have done on recorded events (docs/automations.md, "Backtest"). It only reads.

The events of a stretch of the stream are gone through in pages, the oldest first, and seen masked: whoever
writes a draft could ask for a secret piece by piece else. The draft counts as active all the while, whatever
its status.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Final

from shared.db.automations import find_by_reference
from shared.errors import BadEvent, ConfigError
from shared.event_stream import LAST, Reach, forward
from shared.model.automation import Automation, Definition
from shared.model.events import Event, decode_entry
from shared.model.stamps import Stamp, parse_stamp
from shared.model.statuses import AutomationStatus
from shared.model.triggers import EVENTLESS_TRIGGERS
from shared.redis_port import Entry
from shared.rules.conditions import LeafVerdict
from shared.rules.examining import Check, CheckName, Earlier, Examiner, Known
from shared.rules.rehearsing import Episodes, Waiting
from shared.rules.triggering import is_delayed
from shared.services.backends import Backends
from shared.services.recorded import masked_event
from shared.services.references import check_workspace
from shared.services.verdicts import DECIDED_BY_RUN
from shared.settings import Settings
from shared.time.clock import from_epoch_ms

PAGE: Final = 200
EXAMPLES: Final = 5
LOOKED_AT_FOR_EACH: Final = 20


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which events: from `first` to `last`, no more than `most` of the workspace, and `within_s` seconds."""

    first: Stamp
    last: Stamp = LAST
    most: int = 10_000
    within_s: float = math.inf


class Made(StrEnum):
    """What a draft makes of an event: a run, or an episode that waits; of one that goes on no second one."""

    WOULD_RUN = "would_run"
    ARMED = "armed"
    GOES_ON = "goes_on"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the conditions, and on how many events it was to blame."""

    path: str
    field: str
    op: str
    said_no: int


@dataclass(frozen=True, slots=True)
class Example:
    """One event, and what the draft made of it; `check` is the one that said no, if one did."""

    entry_id: str
    type: str
    made: Made
    check: Check | None
    blamed: tuple[LeafVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class Backtest:
    """What came of it. `no` counts by the first check that said no, `unreadable` entries that are no events.

    Of a draft that waits `delayed` counts episodes, and `would_run` those that came due. `next` is the first
    entry that was not gone through any more, None if the whole stretch was.
    """

    events: int
    would_run: int
    delayed: Episodes | None
    no: dict[CheckName, int]
    leaves: tuple[Leaf, ...]
    examples: tuple[Example, ...]
    unreadable: int
    next: Stamp | None


def backtest(
    backends: Backends,
    settings: Settings,
    workspace_id: str,
    drafted: tuple[Definition, Stretch],
    tell: Callable[[int, datetime], None],
) -> Backtest:
    """Hold a draft against recorded events; `tell` hears after each page how many, and up to when.

    Of a draft whose key an automation has, events that this one's runs emitted start nothing. Raises
    NotFound without the workspace, ConfigError for a draft that no event starts.
    """
    definition, stretch = drafted
    rehearsal = Rehearsal(_drafted(backends, workspace_id, definition), settings.automation_max_depth)
    looked = 0
    until_s = backends.clock.monotonic() + stretch.within_s
    for page in forward(backends.redis, backends.keys, Reach(stretch.first, stretch.last), PAGE):
        for entry in page:
            is_enough = rehearsal.events == stretch.most or looked == stretch.most * LOOKED_AT_FOR_EACH
            if is_enough or (looked and backends.clock.monotonic() >= until_s):
                return rehearsal.result(_stamp(entry), from_epoch_ms(_stamp(entry)[0]))
            rehearsal.take(entry)
            looked += 1
        tell(rehearsal.events, from_epoch_ms(_stamp(page[-1])[0]))
    end = min(backends.clock.now(), from_epoch_ms(stretch.last[0]))
    return rehearsal.result(None, end)


class Rehearsal:
    """One draft, and what it has made of the events so far."""

    def __init__(self, automation: Automation, depth_max: int) -> None:
        """Start with no event."""
        self.events = 0
        self._workspace = automation.workspace_id.encode()
        self._examiner = Examiner(automation)
        self._depth_max = depth_max
        self._unreadable = 0
        self._no: Counter[CheckName | None] = Counter()
        self._leaves: dict[str, Leaf] = {}
        self._examples: dict[CheckName | Made, list[Example]] = {}
        self._waiting = Waiting(automation) if is_delayed(automation.definition) else None
        self._taken: dict[bytes, tuple[str, str]] = {}

    def take(self, entry: Entry) -> None:
        """Hold one entry against the draft; those of other workspaces are passed over."""
        entry_id, fields = entry
        if fields.get(b"workspaceId") != self._workspace:
            return
        self.events += 1
        try:
            event = decode_entry(entry_id.decode(), fields)
        except BadEvent:
            self._unreadable += 1
            return
        self._judge(event)

    def result(self, following: Stamp | None, end: datetime) -> Backtest:
        """Say what came of it until `end`; `following` is the entry to go on with."""
        delayed = None if self._waiting is None else self._waiting.end(end)
        return Backtest(
            events=self.events,
            would_run=self._no[None] if delayed is None else delayed.fired,
            delayed=delayed,
            no={name: self._no[name] for name in CheckName if self._no[name]},
            leaves=tuple(sorted(self._leaves.values(), key=lambda leaf: (-leaf.said_no, leaf.path))),
            examples=tuple(each for found in self._examples.values() for each in found),
            unreadable=self._unreadable,
            next=following,
        )

    def _judge(self, event: Event) -> None:
        at = from_epoch_ms(event.stamp[0])
        seen = masked_event(event)
        row = None if self._waiting is None else self._waiting.learn(seen)
        talk = None if self._waiting is None else self._waiting.talk(seen)
        known = Known(at, self._depth_max, earlier=self._earlier(event), subject=row, talk=talk)
        check = self._examiner.first_no(seen, known)
        made = self._make(seen, check)
        name = check.name if check else None
        if name is None or name in DECIDED_BY_RUN:
            self._note_key(event)
        blamed = self._examiner.blamed(seen, known) if name is CheckName.CONDITIONS else ()
        for leaf in blamed:
            counted = self._leaves.get(leaf.path) or Leaf(leaf.path, leaf.field, leaf.op, 0)
            self._leaves[leaf.path] = replace(counted, said_no=counted.said_no + 1)
        self._no[name] += 1
        examples = self._examples.setdefault(name or made, [])
        if len(examples) < EXAMPLES:
            examples.append(Example(event.entry_id, event.type, made, check, blamed))

    def _make(self, event: Event, check: Check | None) -> Made:
        """Let the draft do what it would do with an event that passed every check, or was stopped by one."""
        if self._waiting is None:
            return Made.WOULD_RUN if check is None else Made.NOTHING
        if self._waiting.judge(event, named=check is None):
            return Made.ARMED
        return Made.GOES_ON if check is None else Made.NOTHING

    def _earlier(self, event: Event) -> Earlier | None:
        """Give the entry of the same key that came before; an event without an id has a key of its own."""
        taken = None if event.id is None else self._taken.get(_digest(event.key))
        return None if taken is None else Earlier(None, taken[0], taken[1] == event.hash)

    def _note_key(self, event: Event) -> None:
        if event.id is not None:
            self._taken[_digest(event.key)] = event.entry_id, event.hash


def _drafted(backends: Backends, workspace_id: str, definition: Definition) -> Automation:
    """Take a draft for an automation that has always been active. Raises NotFound, ConfigError."""
    kind = definition.trigger.type
    if kind in EVENTLESS_TRIGGERS:
        raise ConfigError(f"trigger.type: no event starts {kind}; a backtest holds drafts against events")
    with backends.database.read() as conn:
        check_workspace(conn, workspace_id)
        row = find_by_reference(conn, workspace_id, definition.key)
    always = definition.model_copy(update={"status": AutomationStatus.ACTIVE})
    automation_id = row.id if row is not None and row.key == definition.key else ""
    return Automation(automation_id, workspace_id, 0, always, 0, backends.clock.now())


def _digest(key: str) -> bytes:
    return blake2b(key.encode(), digest_size=16).digest()


def _stamp(entry: Entry) -> Stamp:
    return parse_stamp(entry[0].decode())
