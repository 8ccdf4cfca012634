"""The arithmetic of the benchmarks, their events, and their command line. No timing is judged here."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.__main__ import MEASURES, RESULTS, Part, read_options
from benchmarks.figures import median, per_second, percentile, ratios, shown
from benchmarks.lists import FEW as FEW_RUNS
from benchmarks.lists import LISTS, fill
from benchmarks.profiling import fold, tell
from benchmarks.report import Line, Report
from benchmarks.scale import FEW, MANY
from benchmarks.scenario import TWO_HUNDRED, Mix, definition, events, payload
from benchmarks.sites import Site
from benchmarks.sweep import EXPIRY
from benchmarks.sweep import MANY as MANY_WAITING
from benchmarks.waiting import spread, store_due, store_rules, store_waiting
from shared.db.engine import open_database
from shared.db.run_lists import RunQuery, page_of_runs
from shared.db.sql import sql
from shared.model.automation import parse_definition
from shared.rules.conditions import compile_conditions
from shared.services.backends import open_backends
from shared.settings import Settings
from timers.delayed import DelayedSweep

WAITING = sql("SELECT status, count(*) AS n FROM pending_executions GROUP BY status")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("values", "middle"), [([3.0], 3.0), ([3, 1, 2], 2.0), ([4, 1, 3, 2], 2.5)])
def test_the_median_is_the_value_in_the_middle(values: list[float], middle: float) -> None:
    assert median(values) == middle


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1), (1, 1), (50, 50), (50.5, 51), (99, 99), (99.1, 100), (100, 100)]
)
def test_a_percentile_is_the_nearest_rank(percent: float, value: float) -> None:
    assert percentile(list(range(100, 0, -1)), percent) == value


def test_the_percentiles_of_one_value_are_that_value() -> None:
    assert {percentile([7.5], percent) for percent in (0, 50, 99, 100)} == {7.5}


@pytest.mark.parametrize(("values", "percent"), [([], 50), ([1.0], -1), ([1.0], 101)])
def test_a_percentile_of_nothing_or_beyond_all_is_refused(values: list[float], percent: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, percent)


def test_a_rate_counts_from_the_first_to_the_last() -> None:
    assert per_second(500, NOON, NOON + timedelta(seconds=2.5)) == 200


def test_a_rate_over_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="no time"):
        per_second(5, NOON, NOON)


def test_a_ratio_compares_values_of_the_same_round() -> None:
    assert ratios([10, 30], [5, 10]) == [2, 3]
    with pytest.raises(ValueError, match="shorter"):
        ratios([1.0, 2.0], [1.0])


@pytest.mark.parametrize(("value", "text"), [(12345.6, "12,346"), (43.46, "43.5"), (0.456, "0.46")])
def test_three_figures_are_shown(value: float, text: str) -> None:
    assert shown(value) == text


def test_a_line_has_the_median_of_its_rounds_ratios() -> None:
    line = Line("throughput", "ours", "events/s", [100, 900, 400], [100, 100, 100])
    assert line.ratio == 4
    assert Line("throughput", "theirs", "events/s", [100.0]).ratio is None


def test_the_report_is_written_as_json(tmp_path: Path) -> None:
    report = Report({"cpus": 2}, [Line("match", "100 automations", "ms/event", [2.0, 4.0], [1.0, 1.0])])
    report.write(tmp_path / "new" / "figures.json")
    told = json.loads((tmp_path / "new" / "figures.json").read_text())
    assert told["about"] == {"cpus": 2}
    assert told["lines"][0]["median"] == 3
    assert told["lines"][0]["ratio"] == 3


def test_without_arguments_everything_is_measured() -> None:
    options = read_options([])
    assert (options.events, options.rounds, options.json) == (20_000, 3, RESULTS / "latest.json")
    assert list(options.parts) == list(Part)
    assert not options.is_profile
    assert options.waiting == MANY_WAITING
    assert MEASURES.keys() == set(Part)


def test_the_command_line_is_read() -> None:
    told = ["--events=10", "--rounds=1", "--only=scale", "--only=memory", "--json=x.json", "--profile"]
    options = read_options(told)
    assert (options.events, options.rounds, options.json) == (10, 1, Path("x.json"))
    assert list(options.parts) == [Part.SCALE, Part.MEMORY]
    assert options.is_profile


def test_parts_may_be_named_without_a_word_before_them() -> None:
    options = read_options(["sweep", "lists", "--waiting=500"])
    assert (list(options.parts), options.waiting) == ([Part.SWEEP, Part.LISTS], 500)


@pytest.mark.parametrize(
    "told", ["--waiting 0", "sleep", "--events 0", "--rounds -1", "--events many", "--only sleep", "--fast"]
)
def test_a_senseless_command_line_is_refused(told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_options(told.split())
    assert "usage" in capsys.readouterr().err


def test_every_event_of_the_scenario_starts_one_automation_and_passes_its_conditions() -> None:
    mix = Mix(workspaces=2, types=3)
    drafts = list(events(mix, 12))
    places = [(draft.workspace_id, draft.type) for draft in drafts]
    assert places[:6] == places[6:] == list(mix.places())
    assert len(set(places)) == mix.automations
    holds = compile_conditions(parse_definition(definition("order.step_0")).conditions)
    assert all(holds({**draft.payload, "now": NOON}) for draft in drafts)
    assert len({draft.id for draft in drafts}) == 12


def test_the_large_mix_holds_the_small_one() -> None:
    assert TWO_HUNDRED.automations == 200
    assert (FEW.automations, MANY.automations) == (100, 100_000)
    assert set(FEW.places()) < set(MANY.places())


def test_an_event_carries_a_payload_of_an_ordinary_size() -> None:
    assert 200 < len(json.dumps(payload(17))) < 500


def test_collapsed_stacks_are_counted_by_function() -> None:
    profile = fold(["main;work;dumps 3", "main;work 1", "main;work;work 2", ""])
    assert profile.samples == 6
    assert profile.inclusive == {"main": 6, "work": 6, "dumps": 3}
    assert profile.own == {"dumps": 3, "work": 3}


def test_a_profile_tells_our_functions_but_not_the_stem() -> None:
    frames = "serve (matcher/service.py:9);take (matcher/intake.py:5);dumps (json/a.py:1)"
    told = tell(fold([f"{frames} 1", "serve (matcher/service.py:9);read (matcher/stream.py:7) 3"]))
    inclusive, _, own = told.partition("alone")
    assert "25.0 take (matcher/intake.py:5)" in inclusive
    assert "75.0 read (matcher/stream.py:7)" in inclusive
    assert "serve" not in inclusive
    assert "dumps" not in inclusive
    assert "25.0 dumps (json/a.py:1)" in own


def test_the_runs_of_the_lists_are_as_many_as_asked_for_and_shared_out(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    fill(database, FEW_RUNS)
    with database.read() as conn:
        of_one = page_of_runs(conn, LISTS["of one automation"])
        failed = page_of_runs(conn, LISTS["FAILED"])
        everything = page_of_runs(conn, LISTS["of the workspace"])
    database.dispose()
    assert [len(page.rows) for page in (of_one, failed, everything)] == [50, 50, 50]
    assert {row.automation_id for row in of_one.rows} == {"ws_1-3"}
    assert {row.status for row in failed.rows} == {"FAILED"}


def test_due_times_are_even_and_the_workspaces_take_turns() -> None:
    due = spread(["a", "b"], 2, NOON, timedelta(seconds=1))
    assert [place for place, _ in due] == ["a", "b", "a", "b"]
    assert [(at - NOON).total_seconds() for _, at in due] == [0, 0.25, 0.5, 0.75]


def test_a_sweep_fires_all_that_is_due_and_nothing_of_what_waits(sqlite_url: str, redis_url: str) -> None:
    settings = Settings.model_validate({"redis_url": redis_url, "database_url": sqlite_url})
    backends = open_backends(settings, 2)
    store_rules(backends.database, 3)
    store_waiting(Site(redis_url, sqlite_url, Path()), backends.database, 50, 3)
    store_due(backends.database, spread(["ws_0", "ws_2"], 4, datetime.now(UTC), timedelta()))
    DelayedSweep(backends, EXPIRY).pass_once()
    with backends.database.read() as conn:
        page = page_of_runs(conn, RunQuery("ws_2", 50))
        counted = WAITING.run(conn).all()
    backends.close()
    assert len(page.rows) == 4
    assert {(row.status, row.n) for row in counted} == {("pending", 50), ("executed", 8)}
