"""What docs/idle-sequences.md tells a reader to type, and what it lists."""

import pytest

from shared.model.flag_states import SEQUENTIAL_IDLE, FlagState
from shared.model.idle_steps import IdleStatus, IdleStop
from shared.services.flags import set_feature_flag, set_flag
from tests.api.test_docs_api import curl
from tests.calling import Api
from tests.pages import names, page
from tests.people import CALLER

PAGE = page("idle-sequences.md")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_requests_of_the_page_work_as_they_are_written(api: Api) -> None:
    wanted = (SEQUENTIAL_IDLE, FlagState.ON)
    set_feature_flag(api.backends.database, api.backends.clock, CALLER, wanted)
    set_flag(api.backends.database, api.backends.clock, CALLER, wanted)
    key = api.key()
    text = "".join(block.text for block in PAGE.blocks("sh") if block.section in ("Configure", "Channels"))
    lines = text.replace("\\\n", " ").replace("$KEY", key).replace("\n  ", " ").splitlines()
    answers = [curl(api, line) for line in lines]
    assert [answer.status_code for answer in answers] == [201, 200, 200, 201, 200, 200]
    assert [step["order"] for step in answers[1].json()["profile"]["idle_rule"]["steps"]] == [1, 2, 3]
    assert answers[5].json()["settings"] == {"idle_rule": {"enabled": False}}


def test_every_status_is_told() -> None:
    assert {names(row[0])[0] for row in PAGE.table("What waits")} == {*IdleStatus}


def test_every_reason_is_told() -> None:
    assert {names(row[0])[0] for row in PAGE.table("Why a step stopped")} == {*IdleStop}
