"""Explanations of entries: where an entry stands, and what each automation made of it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from api.why_models import DryRunOut, ExplainedOut
from matcher.intake import Intake
from pipeline.engine import Engine
from shared.db.automations import AutomationRow, delete_automation
from shared.db.event_runs import find_event_runs
from shared.db.people import insert_workspace
from shared.errors import NotFound
from shared.event_stream import EntryState
from shared.ids import new_id
from shared.model.automation import parse_definition
from shared.model.events import Context
from shared.model.pending import PendingSkip, PendingStatus
from shared.model.runs import source_id_of
from shared.model.stamps import parse_stamp
from shared.model.statuses import AutomationStatus
from shared.rules.examining import Check, CheckName
from shared.rules.rehearsing import Episodes
from shared.services.backends import Backends
from shared.services.backtests import Made, Stretch, backtest
from shared.services.dry_runs import Trial, dry_run, trial_event
from shared.services.recorded import see_entry
from shared.services.verdicts import DECIDED_BY_RUN, SKIPPED_BY, Explained, Verdict, earlier_of, judge
from shared.services.why import Wanted, explain_entry, known_of
from shared.services.why_shown import dry_run_document, full_document
from shared.settings import Settings
from shared.time.clock import SystemClock, from_epoch_ms
from tests.matching import Post, open_post
from tests.people import opened_backends
from tests.rooms import NOTIFY, open_room, start
from tests.waiting import poll

SETTINGS = Settings.model_validate({})
LATER_MS = 7_000_000_000_000


@pytest.fixture
def post(backends: Backends) -> Post:
    """Give a matcher of its own servers, on the machine's clock."""
    return open_post(replace(backends, clock=SystemClock()))


def explained(post: Post, entry_id: str, row: AutomationRow, workspace_id: str = "w1") -> Explained:
    found = explain_entry(post.backends, SETTINGS, workspace_id, entry_id, Wanted(row.id))
    (each,) = found.automations
    return each


def reason_of(check: Check | None) -> str:
    return "" if check is None else check.reason


def check_of(found: Explained) -> CheckName | None:
    return found.stopped_by.name if found.stopped_by else None


def test_an_entry_is_unread_then_pending_then_taken(post: Post) -> None:
    row = post.add()
    entry_id = post.publish()
    assert see_entry(post.backends, "w1", entry_id).state is EntryState.UNREAD
    assert explained(post, entry_id, row).verdict is Verdict.WAITING
    reading = post.stream.read(10, block_ms=1)
    assert see_entry(post.backends, "w1", entry_id).state is EntryState.PENDING
    post.intake.take(reading)
    found = explained(post, entry_id, row)
    assert see_entry(post.backends, "w1", entry_id).state is EntryState.TAKEN
    assert (found.verdict, found.run is not None and found.run.id) == (Verdict.MATCHED, post.runs()[0].id)


def test_an_entry_is_unread_where_nobody_has_ever_read(backends: Backends) -> None:
    entry_id = backends.redis.xadd(
        backends.keys.stream, {"type": "a.b", "workspaceId": "w1", "payload": "{}"}
    ).decode()
    assert see_entry(backends, "w1", entry_id).state is EntryState.UNREAD


def test_a_trimmed_entry_is_gone_and_one_that_never_was_is_not_there(post: Post) -> None:
    first, second = post.publish(), post.publish()
    post.backends.redis.xtrim(post.backends.keys.stream, minid=second, approximate=False)
    gone = explain_entry(post.backends, SETTINGS, "w1", first, Wanted())
    assert (gone.entry.state, gone.automations) == (EntryState.GONE, ())
    assert gone.entry.reason == "it is older than all that is left of the stream"
    ms = int(second.partition("-")[0])
    for never in (f"{ms + 1}-0", f"{ms}-99999", "no-id", "1", ""):
        with pytest.raises(NotFound):
            see_entry(post.backends, "w1", never)
    post.backends.redis.xtrim(post.backends.keys.stream, maxlen=0, approximate=False)
    assert see_entry(post.backends, "w1", second).state is EntryState.GONE


def test_an_entry_that_was_given_up_tells_its_reason(post: Post) -> None:
    entry_id = post.publish_raw({"type": "order.placed", "workspaceId": "w1", "payload": "[]"})
    unread = see_entry(post.backends, "w1", entry_id)
    assert (unread.state, unread.reason) == (EntryState.UNREAD, "payload: is not a JSON object")
    post.step()
    dead = see_entry(post.backends, "w1", entry_id)
    assert (dead.state, dead.reason) == (EntryState.DEAD, "payload: is not a JSON object")
    post.backends.redis.xtrim(post.backends.keys.stream, maxlen=0, approximate=False)
    assert see_entry(post.backends, "w1", entry_id).state is EntryState.DEAD
    with pytest.raises(NotFound):
        see_entry(post.backends, "w2", entry_id)


def test_an_entry_of_another_workspace_is_not_there(post: Post) -> None:
    entry_id = post.publish(workspace_id="w2")
    with pytest.raises(NotFound):
        explain_entry(post.backends, SETTINGS, "w1", entry_id, Wanted())


def test_each_automation_says_what_kept_it_from_a_run(post: Post) -> None:
    rows = {
        "paused": post.add(status=AutomationStatus.PAUSED),
        "too_new": post.add(activated_ms=LATER_MS),
        "typed": post.add({"type": "RECORD_CREATED"}),
        "delayed": post.add(execution_delay=3),
        "fits": post.add(),
    }
    deleted = post.add()
    with post.backends.database.begin() as conn:
        delete_automation(conn, deleted.id, now=datetime.now(UTC))
    post.backends.redis.incr(post.backends.keys.index_version)
    entry_id = post.publish()
    post.step()
    found = {name: check_of(explained(post, entry_id, row)) for name, row in rows.items()}
    assert found == {
        "paused": CheckName.STATUS,
        "too_new": CheckName.ACTIVATION,
        "typed": CheckName.TRIGGER,
        "delayed": CheckName.DELAY,
        "fits": None,
    }
    gone = explained(post, entry_id, deleted).stopped_by
    assert gone is not None
    assert (gone.name, gone.found) == (CheckName.STATUS, "DELETED")
    everything = explain_entry(post.backends, SETTINGS, "w1", entry_id, Wanted()).automations
    assert {each.automation.id for each in everything} == {row.id for row in rows.values()}


STUCK = {"all": [{"field": "conversation.status", "op": "eq", "value": "pending"}]}


def told(status: str) -> dict[str, Any]:
    return {"conversation": {"id": "c1", "status": status}}


def test_one_that_waits_tells_what_the_event_armed_and_what_became_of_it(post: Post) -> None:
    row = post.add({"type": "CONVERSATION_UPDATED"}, conditions=STUCK, execution_delay=240)
    early = post.publish("conversation.updated", told("open"))
    first = post.publish("conversation.updated", told("pending"))
    again = post.publish("conversation.updated", told("pending"))
    assert explained(post, first, row).verdict is Verdict.WAITING
    post.step()
    armed, held = explained(post, first, row), explained(post, again, row)
    assert (armed.verdict, armed.stopped_by, armed.run) == (Verdict.ARMED, None, None)
    (pending,) = armed.pending
    assert (pending.armed_by, pending.status) == (first, PendingStatus.PENDING)
    assert pending.due_at - pending.started_at == timedelta(hours=4)
    assert (held.verdict, held.pending) == (Verdict.ARMED, armed.pending)
    check = next(each for each in armed.examination.checks if each.name is CheckName.DELAY)
    assert (check.passed, check.found) == (True, "waits 4h, then looks again")
    document = full_document(armed)
    assert document["pending"][0]["due_at"] == pending.due_at
    assert ExplainedOut.model_validate(document).pending[0].runs_after == "runs after 4h"
    last = post.publish("conversation.resolved", told("resolved"))
    post.step()
    (pending,) = explained(post, first, row).pending
    assert (pending.status, pending.skip_reason) == (PendingStatus.SKIPPED, PendingSkip.CONDITIONS_CHANGED)
    assert check_of(explained(post, early, row)) is CheckName.CONDITIONS
    assert check_of(explained(post, last, row)) is CheckName.TRIGGER


def test_a_dry_run_of_one_that_waits_says_when_it_would_be_due(post: Post) -> None:
    row = post.add({"type": "CONVERSATION_UPDATED"}, conditions=STUCK, execution_delay=240)

    def tried(status: str) -> Any:
        given = {"type": "conversation.updated", "payload": told(status)}
        event = trial_event(post.backends, "w1", given)
        return dry_run(post.backends, SETTINGS, "w1", Trial(row.id, event)), event

    dry, event = tried("pending")
    assert dry.waits is not None
    assert dry.waits.started_at == from_epoch_ms(event.stamp[0])
    assert dry.waits.due_at == dry.waits.started_at + timedelta(hours=4)
    assert DryRunOut.model_validate(dry_run_document(dry)).waits is not None
    since = post.publish("conversation.updated", told("pending"))
    post.step()
    again, _ = tried("pending")
    assert again.waits.started_at == from_epoch_ms(parse_stamp(since)[0])
    no, _ = tried("open")
    assert (no.waits, no.examination.stopped_by.name) == (None, CheckName.CONDITIONS)


def test_a_dry_run_of_one_that_waits_for_an_answer_counts_from_the_first_question(post: Post) -> None:
    incoming = {"all": [{"field": "message.direction", "op": "eq", "value": "incoming"}]}
    row = post.add({"type": "MESSAGE_CREATED"}, conditions=incoming, execution_delay=60)
    said = {"conversation": {"id": "c1"}, "message": {"id": "m1", "direction": "incoming"}}
    first = post.publish("message.created", said)
    post.step()
    later = {**said, "message": {"id": "m2", "direction": "incoming"}}
    event = trial_event(post.backends, "w1", {"type": "message.created", "payload": later})
    dry = dry_run(post.backends, SETTINGS, "w1", Trial(row.id, event))
    assert dry.waits is not None
    assert dry.waits.started_at == from_epoch_ms(parse_stamp(first)[0])


@pytest.mark.parametrize(
    ("direction", "more", "said"),
    [
        ("incoming", {"private": True}, "a private note begins nothing"),
        ("incoming", {"autoSubmitted": "auto-replied"}, "no person wrote"),
        ("outgoing", {"senderType": "automation"}, "machine wrote begins nothing"),
        ("outgoing", {"private": True}, "a private note begins nothing"),
    ],
)
def test_a_message_that_begins_nothing_is_told_so_by_explain_dry_run_and_backtest(
    post: Post, direction: str, more: dict[str, Any], said: str
) -> None:
    wanted = {"all": [{"field": "message.direction", "op": "eq", "value": direction}]}
    row = post.add({"type": "MESSAGE_CREATED"}, conditions=wanted, execution_delay=60)
    payload = {"conversation": {"id": "c1"}, "message": {"id": "m1", "direction": direction, **more}}
    entry_id = post.publish("message.created", payload)
    post.step()
    assert post.rows("SELECT id FROM pending_executions") == []
    found = explained(post, entry_id, row)
    assert (found.verdict, said in reason_of(found.stopped_by)) == (Verdict.NOT_MATCHED, True)
    event = trial_event(post.backends, "w1", {"type": "message.created", "payload": payload})
    dry = dry_run(post.backends, SETTINGS, "w1", Trial(row.id, event))
    assert (dry.waits, said in reason_of(dry.examination.stopped_by)) == (None, True)
    draft = parse_definition({**row.definition, "status": "ACTIVE"})
    tested = backtest(post.backends, SETTINGS, "w1", (draft, Stretch((0, 0))), lambda events, at: None)
    assert (tested.delayed, [each.made for each in tested.examples]) == (
        Episodes(0, 0, 0, 0),
        [Made.NOTHING],
    )


def test_a_dry_run_tells_what_waits_for_the_episode_already(post: Post) -> None:
    row = post.add({"type": "CONVERSATION_UPDATED"}, conditions=STUCK, execution_delay=240)
    post.publish("conversation.updated", told("pending"))
    post.step()
    (kept,) = post.rows("SELECT id FROM pending_executions")
    event = trial_event(post.backends, "w1", {"type": "conversation.updated", "payload": told("pending")})
    dry = dry_run(post.backends, SETTINGS, "w1", Trial(row.id, event))
    shown = DryRunOut.model_validate(dry_run_document(dry)).waits
    assert shown is not None
    assert shown.already is not None
    assert (shown.already.id, shown.already.status) == (kept.id, "pending")


def test_a_record_of_another_database_or_property_says_so(post: Post) -> None:
    scoped = post.add({"type": "RECORD_UPDATED", "config": {"databaseId": "d1"}})
    watching = post.add({"type": "PROPERTY_CHANGED", "config": {"properties": ["due"]}})
    payload = {"recordId": "r", "databaseId": "d2", "properties": {}, "changedProperties": ["status"]}
    entry_id = post.publish("record.updated", payload)
    post.step()
    assert check_of(explained(post, entry_id, scoped)) is CheckName.DATABASE
    assert check_of(explained(post, entry_id, watching)) is CheckName.PROPERTIES


def test_a_duplicate_names_the_run_of_the_earlier_entry(post: Post) -> None:
    row = post.add()
    first = post.publish(payload={"total": 1}, id="e1")
    second = post.publish(payload={"total": 2}, id="e1")
    post.step()
    (run,) = post.runs()
    found = explained(post, second, row)
    assert (found.verdict, check_of(found), found.run) == (Verdict.NOT_MATCHED, CheckName.DUPLICATE, None)
    assert found.stopped_by is not None
    assert (found.stopped_by.found, f"entry {first} " in found.stopped_by.reason) == (run.id, True)
    assert "another payload" in found.stopped_by.reason
    assert explained(post, first, row).verdict is Verdict.MATCHED


def test_an_old_event_says_that_it_is_expired(backends: Backends) -> None:
    own = replace(backends, clock=SystemClock())
    post = replace(open_post(own), intake=Intake(own, timedelta(days=30)))
    row = post.add()
    long_ago = int((datetime.now(UTC) - timedelta(days=29, hours=1)).timestamp() * 1000)
    fields = {"type": "order.placed", "workspaceId": "w1", "payload": "{}"}
    entry_id = own.redis.xadd(own.keys.stream, fields, id=f"{long_ago}-0").decode()
    post.step()
    assert (post.runs(), check_of(explained(post, entry_id, row))) == ([], CheckName.AGE)


def test_one_that_was_changed_after_the_event_has_no_run(post: Post) -> None:
    row = post.add({"type": "RECORD_CREATED"})
    entry_id = post.publish()
    post.step()
    trigger = {"type": "EVENT", "config": {"eventType": "order.placed"}}
    post.change(replace(row, definition={**row.definition, "trigger": trigger}, version=2))
    found = explained(post, entry_id, row)
    assert (found.verdict, found.stopped_by, found.run) == (Verdict.NO_RUN, None, None)


def test_a_definition_that_cannot_be_read_says_so(post: Post) -> None:
    row = post.add()
    post.change(replace(row, definition={**row.definition, "actions": []}, version=2))
    entry_id = post.publish()
    post.step()
    assert check_of(explained(post, entry_id, row)) is CheckName.DEFINITION


def test_automations_come_in_pages_by_key(post: Post) -> None:
    keys = sorted(post.add().key for _ in range(5))
    entry_id = post.publish()
    found = []
    wanted = Wanted(most=2)
    while page := explain_entry(post.backends, SETTINGS, "w1", entry_id, wanted).automations:
        found += [each.automation.key for each in page]
        wanted = replace(wanted, after=found[-1])
    assert found == keys


OPS, TOTALS = st.sampled_from(["gt", "eq", "ne"]), st.sampled_from([0, 1])
LEAVES = st.one_of(
    st.builds(lambda op, value: {"field": "total", "op": op, "value": value}, OPS, TOTALS),
    st.just({"field": "country", "op": "eq", "value": "CH"}),
    st.just({"field": "status", "op": "changed"}),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"any": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=5,
)
TRIGGERS = st.sampled_from(
    [
        {"type": "EVENT", "config": {"eventType": "order.*"}},
        {"type": "RECORD_UPDATED"},
        {"type": "RECORD_UPDATED", "config": {"databaseId": "d1"}},
        {"type": "PROPERTY_CHANGED", "config": {"properties": ["status"]}},
        {"type": "PROPERTY_CHANGED", "config": {"properties": ["*"], "databaseId": "d1"}},
        {"type": "MANUAL"},
    ]
)
AUTOMATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "trigger": TRIGGERS,
            "status": st.sampled_from(
                [AutomationStatus.ACTIVE] * 5 + [AutomationStatus.PAUSED, AutomationStatus.DRAFT]
            ),
            "activated_ms": st.sampled_from([0, 0, 0, LATER_MS]),
            "conditions": st.none() | TREES,
        }
    ),
    min_size=1,
    max_size=5,
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "type_": st.sampled_from(["order.placed", "record.updated", "record.updated"]),
            "payload": st.fixed_dictionaries(
                {},
                optional={
                    "total": st.sampled_from([0, 1, "1", None]),
                    "country": st.sampled_from(["CH", "DE"]),
                    "databaseId": st.sampled_from(["d1", "d2"]),
                    "changedProperties": st.lists(st.sampled_from(["status", "due"]), max_size=2),
                },
            ),
            "id": st.none() | st.sampled_from(["e1", "e2"]),
            "emitter": st.sampled_from([None, None, "another", 0, 1]),
            "depth": st.sampled_from([1, 4, 5, 6]),
        }
    ),
    min_size=1,
    max_size=5,
)


@dataclass
class Scene:
    """A matcher and an engine on one database, and what is asked about what they do."""

    post: Post
    engine: Engine

    def add(self, workspace_id: str, automations: list[dict[str, Any]]) -> list[AutomationRow]:
        with self.post.backends.database.begin() as conn:
            insert_workspace(conn, workspace_id, "A workspace", now=datetime.now(UTC))
        return [self.post.add(workspace_id=workspace_id, actions=[NOTIFY], **each) for each in automations]

    def publish(self, workspace_id: str, event: dict[str, Any], rows: list[AutomationRow]) -> str:
        emitter = event["emitter"]
        given = {name: event[name] for name in ("payload", "id")}
        context = None
        if emitter is not None:
            by = new_id() if emitter == "another" else rows[emitter % len(rows)].id
            context = Context(by, new_id(), new_id(), event["depth"])
        return self.post.publish(event["type_"], workspace_id=workspace_id, context=context, **given)

    def drive(self, workspace_id: str) -> None:
        poll(lambda: self.post.step() == 0)
        query = "SELECT id FROM automation_runs WHERE workspace_id = :workspace_id"
        run_ids = [row.id for row in self.post.rows(query, workspace_id=workspace_id)]
        self.engine.take(run_ids)
        assert self.engine.wait_idle(10)

    def compare(self, workspace_id: str, entry_id: str, row: AutomationRow) -> None:
        """Hold what is explained against the run that there is, or is not."""
        event = see_entry(self.post.backends, workspace_id, entry_id).event
        assert event is not None
        source_id = source_id_of(row.id, event.key)
        with self.post.backends.database.read() as conn:
            run = find_event_runs(conn, [source_id]).get(source_id)
        is_own = run is not None and run.entry_id == entry_id
        known = known_of(self.post.backends, SETTINGS, event.stamp[0])
        if run is not None and not is_own:
            known = replace(known, earlier=earlier_of(run, event))
        foretold = judge(row, event, known).stopped_by
        found = explained(self.post, entry_id, row, workspace_id)
        if run is None or not is_own:
            assert foretold is not None
            assert foretold.name not in DECIDED_BY_RUN
            assert (found.verdict, found.stopped_by) == (Verdict.NOT_MATCHED, foretold)
            return
        assert run.status == "SUCCEEDED"
        reason = SKIPPED_BY.get(run.skip_reason or "")
        assert (foretold.name if foretold else None) is reason
        assert (found.verdict, check_of(found)) == (Verdict.MATCHED, reason)


@pytest.fixture
def scene(sqlite_url: str, redis_url: str) -> Iterator[Scene]:
    """Set the scene on SQLite, where the many small transactions are quick."""
    engines: list[Engine] = []
    with opened_backends(sqlite_url, redis_url) as backends:
        room = open_room(redis_url, sqlite_url)
        engine = start(room, engines)
        yield Scene(open_post(replace(backends, clock=SystemClock())), engine)
        engine.stop(grace_s=2)
        room.database.dispose()
        room.parts.redis.close()


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(automations=AUTOMATIONS, events=EVENTS)
def test_what_is_explained_is_what_matcher_and_pipeline_did(
    scene: Scene, automations: list[dict[str, Any]], events: list[dict[str, Any]]
) -> None:
    workspace_id = new_id()
    rows = scene.add(workspace_id, automations)
    entries = [scene.publish(workspace_id, event, rows) for event in events]
    scene.drive(workspace_id)
    for entry_id in entries:
        for row in rows:
            scene.compare(workspace_id, entry_id, row)
