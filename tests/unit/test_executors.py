"""The local actions: what they ask the journal to change, and that asking twice is asking once."""

from collections.abc import Iterator

import pytest

from executors.create_notification import create_notification
from executors.create_record import create_record
from executors.emit_event import emit_event
from executors.outbound import Outbound
from executors.registry import EXECUTORS, executor_for
from executors.update_record import update_record
from shared.errors import FatalError
from shared.model.actions import (
    ACTION_CONFIGS,
    CreateNotification,
    CreateRecord,
    EmitEvent,
    SubjectRef,
    UpdateRecord,
)
from shared.model.effects import CreateSubject, Emit, Notify, UpdateSubject
from tests.contexts import Trip, guarded_way_out


@pytest.fixture(scope="module")
def http() -> Iterator[Outbound]:
    outbound = guarded_way_out()
    yield outbound
    outbound.close()


def test_every_action_type_has_an_executor_and_only_those() -> None:
    assert set(EXECUTORS) == set(ACTION_CONFIGS)


def test_an_unknown_action_type_is_refused() -> None:
    with pytest.raises(FatalError, match="UNKNOWN_ACTION"):
        executor_for("FLY")


def test_a_test_may_bring_its_own_executors() -> None:
    mine = EXECUTORS["EMIT_EVENT"]
    assert executor_for("FLY", {"FLY": mine}) is mine


def test_a_config_of_another_type_is_refused(http: Outbound) -> None:
    with pytest.raises(FatalError, match="CONFIG_INVALID"):
        executor_for("SEND_WEBHOOK")(EmitEvent(event_type="a.b"), Trip(http).context())


def test_a_notice_goes_to_owners_and_admins_unless_told(http: Outbound) -> None:
    result = create_notification(CreateNotification(title="T", body="B"), Trip(http).context())
    assert result.effects == (Notify("T", "B", ("owner", "admin")),)
    assert result.output == {"title": "T", "roles": ["owner", "admin"]}


@pytest.mark.parametrize(
    ("config", "event", "subject"),
    [
        (UpdateRecord(properties={"a": 1}), {"recordId": "r1"}, ("record", "r1")),
        (UpdateRecord(properties={"a": 1}), {"recordId": 17}, ("record", "17")),
        (UpdateRecord(properties={"a": 1}, record_id="r2"), {"recordId": "r1"}, ("record", "r2")),
        (
            UpdateRecord(properties={"a": 1}, subject=SubjectRef(type="conversation", id="c1")),
            {"recordId": "r1"},
            ("conversation", "c1"),
        ),
    ],
)
def test_an_update_names_its_subject(
    http: Outbound, config: UpdateRecord, event: dict[str, object], subject: tuple[str, str]
) -> None:
    result = update_record(config, Trip(http, event=event).context())
    kind, name = subject
    assert result.effects == (UpdateSubject(kind, name, {"a": 1}, False, f"{kind}.updated"),)


def test_an_update_may_be_forced(http: Outbound) -> None:
    config = UpdateRecord(properties={"a": 1}, record_id="r", force=True)
    (effect,) = update_record(config, Trip(http).context()).effects
    assert isinstance(effect, UpdateSubject)
    assert effect.force


@pytest.mark.parametrize("event", [{}, {"recordId": None}, {"recordId": ""}, {"recordId": True}])
def test_an_update_without_a_record_is_fatal(http: Outbound, event: dict[str, object]) -> None:
    with pytest.raises(FatalError, match="NO_SUBJECT"):
        update_record(UpdateRecord(properties={"a": 1}), Trip(http, event=event).context())


def test_a_record_keeps_its_id_over_attempts(http: Outbound) -> None:
    config = CreateRecord(database_id="d1", properties={"a": 1})
    first = create_record(config, Trip(http, attempt=1).context())
    second = create_record(config, Trip(http, attempt=2).context())
    other = create_record(config, Trip(http, position=2).context())
    assert first == second
    assert first.output["recordId"] != other.output["recordId"]
    (effect,) = first.effects
    record_id = first.output["recordId"]
    assert effect == CreateSubject("record", record_id, {"a": 1}, "d1", "record.created", may_exist=True)


def test_a_record_takes_the_id_it_is_given(http: Outbound) -> None:
    config = CreateRecord(database_id="d1", record_id="mine")
    assert create_record(config, Trip(http).context()).output == {"recordId": "mine", "databaseId": "d1"}


def test_an_event_is_emitted(http: Outbound) -> None:
    result = emit_event(EmitEvent(event_type="order.seen", payload={"id": 1}), Trip(http).context())
    assert result.effects == (Emit("order.seen", {"id": 1}),)
