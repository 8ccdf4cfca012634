"""CREATE_PAGE and ADD_COMMENT, through an engine, on both databases."""

from typing import Any

import pytest

from pipeline.engine import Engine
from tests.acting import Stage, action
from tests.rooms import Room, start

RECORD = {"recordId": "r1", "databaseId": "d1", "properties": {"status": "new"}}


@pytest.fixture
def stage(room: Room, engines: list[Engine]) -> Stage:
    return Stage(room, start(room, engines))


def test_a_page_is_made_and_told_of(stage: Stage) -> None:
    written = action(
        "CREATE_PAGE",
        title="Minutes of {{ recordId }}",
        content={"blocks": ["{{ properties.status }}"]},
        properties={"tag": "x"},
        parent_id="p0",
    )
    row = stage.acts(written, on=RECORD, type="record.created")
    page_id = stage.outputs(row)["1"]["pageId"]
    fields = {
        "title": "Minutes of r1",
        "content": {"blocks": ["new"]},
        "properties": {"tag": "x"},
        "parentId": "p0",
    }
    assert stage.state("page", page_id) == fields
    [event] = stage.told()
    assert (event["type"], event["payload"]) == ("page.created", {**fields, "pageId": page_id})
    assert stage.outputs(row)["1"] == {
        "pageId": page_id,
        "title": "Minutes of r1",
        "event_id": event["id"],
    }


def test_a_page_with_an_id_that_is_taken_is_refused_and_one_of_its_own_is_made_once(stage: Stage) -> None:
    stage.knows("page", "p1", title="Old")
    taken = stage.acts(action("CREATE_PAGE", title="New", page_id="p1"))
    assert (stage.failure(taken), stage.state("page", "p1")) == ("ALREADY_EXISTS", {"title": "Old"})
    row = stage.acts(action("CREATE_PAGE", title="New"), action("CREATE_PAGE", title="New"))
    ids = [output["pageId"] for output in stage.outputs(row).values()]
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    ("config", "on", "type_", "subject"),
    [
        ({}, RECORD, "record.created", ("record", "r1")),
        ({}, {"conversation": {"id": "r1"}}, "conversation.updated", ("conversation", "r1")),
        ({}, {"recordId": "r1"}, "order.placed", ("record", "r1")),
        ({"record_id": "{{ id }}"}, {"id": "r1"}, "order.placed", ("record", "r1")),
        ({"subject": {"type": "order", "id": "r1"}}, RECORD, "record.created", ("order", "r1")),
    ],
)
def test_a_comment_is_a_row_and_an_event_about_its_subject(
    stage: Stage, config: dict[str, Any], on: dict[str, Any], type_: str, subject: tuple[str, str]
) -> None:
    stage.knows(*subject, status="new")
    row = stage.acts(action("ADD_COMMENT", body="Seen in {{ run.id }}", **config), on=on, type=type_)
    comment = stage.room.one("SELECT * FROM comments")
    assert (comment.subject_type, comment.subject_id) == subject
    assert (comment.author, comment.body, comment.run_id) == ("Keeper", f"Seen in {row.id}", row.id)
    [event] = stage.told()
    assert (event["type"], event["context"]["depth"]) == ("comment.created", 1)
    assert event["payload"] == {
        "comment": {"id": comment.id, "body": comment.body, "author": "Keeper"},
        "subject": {"type": subject[0], "id": subject[1]},
    }
    assert stage.outputs(row)["1"]["commentId"] == comment.id
    assert stage.state(*subject) == {"status": "new"}


def test_a_comment_may_have_another_author(stage: Stage) -> None:
    stage.knows("record", "r1", a=1)
    stage.acts(action("ADD_COMMENT", body="b", author="{{ who }}"), on={**RECORD, "who": "Ada"})
    assert stage.room.one("SELECT author FROM comments").author == "Ada"


def test_a_comment_about_what_is_not_there_ends_the_run(stage: Stage) -> None:
    comment = action("ADD_COMMENT", body="b", record_id="r1")
    assert stage.failure(stage.acts(comment)) == "REFERENCE_GONE"
    stage.knows("record", "r1", a=1)
    stage.loses("record", "r1")
    assert stage.failure(stage.acts(comment)) == "REFERENCE_GONE"
    nobody = stage.acts(action("ADD_COMMENT", body="b"), on={"a": 1}, type="order.placed")
    assert stage.failure(nobody) == "NO_SUBJECT"
    too_long = stage.acts(action("ADD_COMMENT", body="{{ a }}", record_id="r2"), on={"a": "\n"})
    assert stage.failure(too_long) == "CONFIG_INVALID"
    assert (stage.room.all("SELECT * FROM comments"), stage.told()) == ([], [])
