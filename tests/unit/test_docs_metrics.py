"""The page of the metrics has every metric, every counter and every alert, and no other."""

import re

import yaml

from shared.keys import DEAD_LETTERS, Keys, delayed_key, idle_key, observed_key
from shared.metrics.counters import DELAYED, HEALTH, SKIPPED
from shared.metrics.samples import METRICS
from shared.model.idle_steps import IdleResult
from shared.observations import BUCKETS, SUM, Measure
from tests.pages import ROOT, names, page

PAGE = page("metrics.md")
KEYS = Keys("", "factory:events")
ROOMS = ("shared", "matcher", "pipeline", "executors", "timers", "watchdog", "worker", "api")


def sources() -> list[str]:
    return [file.read_text(encoding="utf-8") for room in ROOMS for file in (ROOT / room).rglob("*.py")]


def test_every_metric_is_told_with_its_kind_labels_and_meaning() -> None:
    documented = {
        names(name)[0]: (kind, names(labels), meaning)
        for name, kind, labels, meaning in PAGE.table("All metrics")
    }
    assert documented == {
        name: (metric.kind, list(metric.labels), metric.help) for name, metric in METRICS.items()
    }


def test_the_metrics_have_the_names_and_labels_that_prometheus_asks_for() -> None:
    for name, metric in METRICS.items():
        assert re.fullmatch(r"knockon_[a-z_]+", name)
        assert name.endswith("_total") == (metric.kind == "counter")
        assert metric.kind != "histogram" or name.endswith("_seconds")


def test_the_counters_have_the_names_of_their_keys() -> None:
    documented = {names(row[0])[0] for row in PAGE.table("Counters in Redis")}
    assert documented == {
        KEYS.matched("{trigger type}"),
        KEYS.action("{type}", "succeeded"),
        KEYS.action("{type}", "failed"),
        KEYS.dead_letter("{workspace}"),
        *(KEYS.skipped(reason) for reason in SKIPPED),
        *(delayed_key(KEYS, outcome) for outcome in DELAYED),
        delayed_key(KEYS, "skipped:{reason}"),
        *(idle_key(KEYS, result) for result in IdleResult),
        *(KEYS.count(name) for name in HEALTH),
    }


def test_every_counter_that_is_raised_is_a_metric() -> None:
    health = {found for text in sources() for found in re.findall(r'(?:\.health|\.count)\("(\w+)"', text)}
    health |= {found for text in sources() for found in re.findall(r'BAD_COUNTER: Final = "(\w+)"', text)}
    skipped = {found for text in sources() for found in re.findall(r'\.skipped\("(\w+)"', text)}
    assert health | {DEAD_LETTERS} == set(HEALTH)
    assert skipped == set(SKIPPED)


def test_the_durations_are_told_as_they_are_kept() -> None:
    text = PAGE.text
    assert f"Upper bounds of the buckets, in seconds: {', '.join(BUCKETS[:-1])}." in text
    assert observed_key(KEYS, "{measure}") in text
    assert f"`{SUM}`" in text
    assert {f"knockon_{measure.partition(':')[0]}_seconds" for measure in Measure} == {
        name for name, metric in METRICS.items() if metric.kind == "histogram"
    }


def test_every_alert_is_told_with_its_severity() -> None:
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "rules.yaml").read_text())
    documented = [(names(name)[0], severity) for name, severity, _ in PAGE.table("Alerts")]
    assert documented == [
        (rule["alert"], rule["labels"]["severity"]) for group in rules["groups"] for rule in group["rules"]
    ]
