"""S01: an AI agent's idle rule is configured, step by step, and shown as it was stored."""

from typing import Any

import pytest

from shared.db.audit_reads import AuditQuery, list_audit
from shared.db.sql import sql
from shared.model.flag_states import SEQUENTIAL_IDLE, FlagState
from shared.services.flags import set_feature_flag, set_flag
from shared.services.workspaces import Scope
from tests.calling import Api
from tests.people import CALLER

PATH = "/v2/ai_agents"
NUDGE = {"action": "follow_up", "duration": 600, "message": "Are you still there?"}
GIVE = {"action": "assign", "duration": 60, "assign": {"type": "agent", "agent": {"id": "u1", "name": "Ada"}}}
CLOSE = {"action": "resolve", "duration": 86_400, "message": "Closing for now."}
LEGACY = {
    "action": "follow_up",
    "follow_up": {"duration": 600, "message": "Hello?"},
    "note": {"kept": [1, 2.5]},
}


@pytest.fixture
def key(api: Api) -> str:
    return api.key(Scope.AGENTS_READ, Scope.AGENTS_WRITE)


def set_both(api: Api, everywhere: FlagState, here: FlagState) -> None:
    """Set both halves of the flag, for the whole installation and in w1."""
    database, clock = api.backends.database, api.backends.clock
    set_feature_flag(database, clock, CALLER, (SEQUENTIAL_IDLE, everywhere))
    set_flag(database, clock, CALLER, (SEQUENTIAL_IDLE, here))


@pytest.fixture
def on(api: Api) -> None:
    """Have the flag on in w1."""
    set_both(api, FlagState.ON, FlagState.ON)


def post(api: Api, key: str, rule: Any, id_: str = "nora") -> Any:
    profile = {"tone": "kind", "idle_rule": rule}
    return api("POST", PATH, key=key, json={"id": id_, "name": "Nora", "profile": profile})


def shown(api: Api, key: str) -> list[Any]:
    """Give the rule of the one agent as each of the reads shows it."""
    one = api("GET", f"{PATH}/nora", key=key).json()
    (listed,) = api("GET", PATH, key=key).json()["items"]
    (short,) = api("GET", f"{PATH}/summary", key=key).json()["items"]
    return [each["profile"]["idle_rule"] for each in (one, listed, short)]


def stored(api: Api, key: str) -> tuple[list[Any], list[Any]]:
    """Give all agents with all that is audited of them."""
    with api.backends.database.read() as conn:
        audited = list_audit(conn, AuditQuery("w1", 10, resource_type="ai_agent"))
    return api("GET", PATH, key=key).json()["items"], list(audited)


def refusal(answer: Any) -> tuple[int, str, Any]:
    return answer.status_code, answer.json()["error"], answer.json()["details"]


@pytest.mark.usefixtures("on")
def test_s01_ac_1_three_valid_steps_are_stored_in_order_and_order_is_derived(api: Api, key: str) -> None:
    steps = [{**NUDGE, "order": 3}, {**GIVE, "order": "x"}, CLOSE]
    made = post(api, key, {"steps": steps})
    assert made.status_code == 201
    assert made.headers["Location"] == f"{PATH}/nora"
    stored = [{**step, "order": place} for place, step in enumerate([NUDGE, GIVE, CLOSE], 1)]
    assert made.json()["profile"] == {"tone": "kind", "idle_rule": {"steps": stored}}
    assert shown(api, key) == [{"steps": stored}] * 3


@pytest.mark.usefixtures("on")
def test_s01_ac_2_what_was_stored_is_echoed_legacy_keys_included(api: Api, key: str) -> None:
    rule = {**LEGACY, "steps": [{**NUDGE, "order": 1, "colour": "red"}]}
    assert post(api, key, rule).status_code == 201
    assert shown(api, key) == [rule] * 3


def test_s01_ac_3_a_rule_without_steps_is_stored_and_echoed_as_before(api: Api, key: str) -> None:
    assert post(api, key, LEGACY).json()["warnings"] == []
    assert shown(api, key) == [LEGACY] * 3
    odd = {"action": "follow_up", "follow_up": {"duration": "soon"}, "resolve": 7}
    changed = api("PATCH", f"{PATH}/nora", key=key, json={"profile": {"idle_rule": odd}})
    assert changed.status_code == 200
    told = "must be a whole number between 1 and 2592000 seconds"
    assert changed.json()["warnings"] == [{"field": "idle_rule.follow_up.duration", "message": told}]
    assert shown(api, key) == [odd] * 3


def check_refused(api: Api, key: str, cases: list[tuple[Any, str]]) -> None:
    """Check that each step is refused between two good ones, in a new agent and in one that is there."""
    assert post(api, key, LEGACY).status_code == 201
    for step, field in cases:
        rule = {"steps": [NUDGE, step, CLOSE]}
        wanted = (422, "IDLE_RULE_STEPS_INVALID", {"index": 1, "field": field})
        assert refusal(post(api, key, rule, "other")) == wanted, step
        patched = api("PATCH", f"{PATH}/nora", key=key, json={"profile": {"idle_rule": rule}})
        assert refusal(patched) == wanted, step
        assert patched.json()["message"].startswith(f"steps[1].{field} "), step
    assert shown(api, key) == [LEGACY] * 3


@pytest.mark.usefixtures("on")
def test_s01_err_1_a_missing_message_is_refused_with_index_and_field(api: Api, key: str) -> None:
    messages: list[dict[str, Any]] = [{}, {"message": None}, {"message": ""}, {"message": " "}]
    messages.append({"message": "\u200b \u2060"})
    actions = ("follow_up", "resolve")
    steps = [{"action": action, "duration": 60, **message} for action in actions for message in messages]
    check_refused(api, key, [(step, "message") for step in steps])


@pytest.mark.usefixtures("on")
def test_s01_err_2_a_duration_out_of_bounds_or_no_whole_number_is_refused(api: Api, key: str) -> None:
    durations = (0, -1, 1.5, 600.0, 86_401, "600", True, None)
    check_refused(api, key, [({**NUDGE, "duration": each}, "duration") for each in durations])


@pytest.mark.usefixtures("on")
def test_s01_err_3_an_unknown_action_or_an_incomplete_target_is_refused(api: Api, key: str) -> None:
    targets: list[Any] = [
        None,
        {"type": "nobody"},
        {"type": "division", "division": {"name": "Support"}},
        {"type": "agent", "division": {"id": "d1"}},
    ]
    actions = [({**GIVE, "action": each}, "action") for each in ("explode", None)]
    check_refused(api, key, [*actions, *(({**GIVE, "assign": each}, "assign") for each in targets)])


@pytest.mark.usefixtures("on")
def test_a_step_that_is_no_object_is_refused_as_a_whole(api: Api, key: str) -> None:
    answer = post(api, key, {"steps": [NUDGE, "resolve"]})
    assert refusal(answer) == (422, "IDLE_RULE_STEPS_INVALID", {"index": 1, "field": "steps"})
    assert answer.json()["message"] == "steps[1] must be an object"


@pytest.mark.usefixtures("on")
def test_s01_neg_1_no_steps_or_four_are_refused_and_nothing_is_stored(api: Api, key: str) -> None:
    wrong: list[Any] = [[], [NUDGE] * 4, "x", {}]
    for steps in wrong:
        answer = post(api, key, {**LEGACY, "steps": steps})
        assert refusal(answer) == (422, "IDLE_RULE_STEPS_INVALID", {"index": None, "field": "steps"})
        assert answer.json()["message"] == "steps must contain between 1 and 3 entries"
    assert stored(api, key) == ([], [])


def test_s01_neg_2_steps_are_refused_unless_both_halves_of_the_flag_are_on(api: Api, key: str) -> None:
    for everywhere in (FlagState.OFF, FlagState.ON):
        for here in (FlagState.OFF, FlagState.ON):
            set_both(api, everywhere, here)
            answer = post(api, key, {"steps": [NUDGE]}, f"{everywhere}-{here}")
            if everywhere is here is FlagState.ON:
                assert answer.status_code == 201
            else:
                assert refusal(answer) == (422, "IDLE_RULE_STEPS_NOT_ENABLED", {"field": "steps"})
                assert stored(api, key) == ([], [])
    set_both(api, FlagState.OFF, FlagState.ON)
    before = stored(api, key)
    changed = api("PATCH", f"{PATH}/on-on", key=key, json={"profile": {"idle_rule": {"steps": [CLOSE]}}})
    assert refusal(changed) == (422, "IDLE_RULE_STEPS_NOT_ENABLED", {"field": "steps"})
    assert stored(api, key) == before
    assert post(api, key, {**LEGACY, "steps": None}, "none").status_code == 201


def test_steps_are_checked_wherever_a_rule_counts(api: Api, key: str) -> None:
    holder: dict[str, Any] = {"idle_rule": {"steps": [NUDGE]}}
    for parameters in ({"profile": holder}, holder):
        answer = api("POST", PATH, key=key, json={"name": "Nora", "parameters": parameters})
        assert refusal(answer)[1] == "IDLE_RULE_STEPS_NOT_ENABLED"


@pytest.mark.usefixtures("on")
def test_a_profile_is_replaced_whole_and_what_is_not_given_stays(api: Api, key: str) -> None:
    parameters = {"model": "m1", "profile": {"tone": "kind", "idle_rule": LEGACY}}
    made = api("POST", PATH, key=key, json={"id": "nora", "name": "Nora", "parameters": parameters})
    assert made.json()["parameters"] == parameters
    named = api("PATCH", f"{PATH}/nora", key=key, json={"name": "Nina"}).json()
    assert (named["name"], named["parameters"]) == ("Nina", parameters)
    replaced = api("PATCH", f"{PATH}/nora", key=key, json={"profile": {"idle_rule": {"steps": [CLOSE]}}})
    profile = {"idle_rule": {"steps": [{**CLOSE, "order": 1}]}}
    assert replaced.json()["parameters"] == {"model": "m1", "profile": profile}
    both: dict[str, Any] = {"profile": {}, "parameters": {"profile": {}}}
    assert api("PATCH", f"{PATH}/nora", key=key, json=both).status_code == 422
    bad = api("PATCH", f"{PATH}/nora", key=key, json={"profile": {"idle_rule": 7}})
    assert (bad.status_code, bad.json()["details"]["field"]) == (422, "profile.idle_rule")
    large = api("PATCH", f"{PATH}/nora", key=key, json={"profile": {"text": "x" * 70_000}})
    assert (large.status_code, large.json()["details"]["field"]) == (422, "parameters")


@pytest.mark.parametrize("stored", ["5", "[1]", '"x"', "null"])
def test_parameters_that_are_no_object_are_shown_as_none_warned_of_and_mended(
    api: Api, key: str, stored: str
) -> None:
    post(api, key, LEGACY, "fine")
    post(api, key, LEGACY)
    with api.backends.database.begin() as conn:
        sql(f"UPDATE ai_agents SET parameters = '{stored}' WHERE id = 'nora'").run(conn)
    warned = [{"field": "parameters", "message": "must be an object"}]
    one = api("GET", f"{PATH}/nora", key=key)
    assert (one.status_code, one.json()["profile"], one.json()["parameters"]) == (200, None, {})
    for path in (PATH, f"{PATH}/summary"):
        listed = api("GET", path, key=key).json()["items"]
        assert [(each["id"], each["warnings"]) for each in listed] == [("fine", []), ("nora", warned)]
    mended = api("PATCH", f"{PATH}/nora", key=key, json={"parameters": {}}).json()
    assert (mended["parameters"], mended["warnings"]) == ({}, [])
    assert api("GET", f"{PATH}/nora", key=key).json() == mended


def test_an_id_is_taken_for_good(api: Api, key: str) -> None:
    assert post(api, key, LEGACY).status_code == 201
    assert refusal(post(api, key, LEGACY)) == (409, "conflict", {"field": "id"})
    assert api("DELETE", f"{PATH}/nora", key=key).status_code == 204
    assert api("DELETE", f"{PATH}/nora", key=key).status_code == 404
    assert api("PATCH", f"{PATH}/nora", key=key, json={"name": "x"}).status_code == 404
    assert api("GET", PATH, key=key).json()["items"] == []
    assert refusal(post(api, key, LEGACY)) == (409, "conflict", {"field": "id"})
    assert post(api, api.key(workspace="w2"), LEGACY).status_code == 201
    made = api("POST", PATH, key=key, json={"name": "Nora"}).json()
    assert len(made["id"]) == 36


def test_an_id_that_no_path_carries_is_refused(api: Api, key: str) -> None:
    for id_ in ("", "summary", "a/b", "..", "a b", "ä", "x" * 101, 7):
        answer = api("POST", PATH, key=key, json={"id": id_, "name": "Nora"})
        assert (answer.status_code, answer.json()["details"]["field"]) == (422, "id")


def test_a_change_is_meant_for_one_state(api: Api, key: str) -> None:
    etag = post(api, key, LEGACY).headers["ETag"]
    assert api("GET", f"{PATH}/nora", key=key).headers["ETag"] == etag
    meant = {"If-Match": etag}
    changed = api("PATCH", f"{PATH}/nora", key=key, json={"name": "Nina"}, headers=meant)
    assert changed.status_code == 200
    for method, body in (("PATCH", {"json": {"name": "Nele"}}), ("DELETE", {})):
        assert api(method, f"{PATH}/nora", key=key, headers=meant, **body).status_code == 412
    meant = {"If-Match": changed.headers["ETag"]}
    assert api("DELETE", f"{PATH}/nora", key=key, headers=meant).status_code == 204


def test_every_write_is_audited_with_what_was_before_and_after(api: Api, key: str) -> None:
    post(api, key, LEGACY)
    for _ in range(2):
        api("PATCH", f"{PATH}/nora", key=key, json={"profile": {}})
    api("DELETE", f"{PATH}/nora", key=key)
    with api.backends.database.read() as conn:
        entries = list_audit(conn, AuditQuery("w1", 10, resource_type="ai_agent"))
    first = {"name": "Nora", "parameters": {"profile": {"tone": "kind", "idle_rule": LEGACY}}}
    second = {"name": "Nora", "parameters": {"profile": {}}}
    assert [(entry.action, entry.detail) for entry in entries] == [
        ("ai_agent.deleted", {"before": second, "after": None}),
        ("ai_agent.updated", {"before": first, "after": second}),
        ("ai_agent.created", {"before": None, "after": first}),
    ]
    assert {entry.resource_id for entry in entries} == {"nora"}


@pytest.mark.usefixtures("on")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_examples_of_the_document_are_taken(api: Api) -> None:
    key = api.key()
    document = api("GET", "/openapi.json").json()
    for path in (PATH, "/v1/audience/channels"):
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert body["examples"]
        for example in body["examples"].values():
            assert api("POST", path, key=key, json=example["value"]).status_code == 201
    body = document["paths"][f"{PATH}/{{agent_id}}"]["patch"]["requestBody"]["content"]["application/json"]
    for example in body["examples"].values():
        assert api("PATCH", f"{PATH}/nora", key=key, json=example["value"]).status_code == 200


def test_pages_go_on_where_the_last_one_ended(api: Api, key: str) -> None:
    for id_ in ("c", "a", "b"):
        post(api, key, LEGACY, id_)
    for path in (PATH, f"{PATH}/summary"):
        first = api("GET", f"{path}?limit=2", key=key).json()
        rest = api("GET", f"{path}?limit=2&cursor={first['next']}", key=key).json()
        assert [each["id"] for each in [*first["items"], *rest["items"]]] == ["a", "b", "c"]
        assert rest["next"] is None
