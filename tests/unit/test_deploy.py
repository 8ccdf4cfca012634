"""The deployment examples name processes, settings, metrics and routes that exist."""

import json
import re
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.app import make_app
from api.bodies import EVENTS_BYTES_MAX
from knockon.rooms import Room
from shared.metrics.samples import METRICS
from shared.services.backends import open_backends
from shared.settings import Settings
from tests.pages import ROOT, page

DEPLOY = ROOT / "deploy"
COMMON = DEPLOY / "systemd" / "knockon-.service.d" / "common.conf"
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
RULES = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text())["groups"]
BOARD = json.loads((DEPLOY / "grafana" / "knockon.json").read_text())
SETTINGS = {name.upper() for name in Settings.model_json_schema(by_alias=True)["properties"]}
GRACE_S = Settings.model_fields["shutdown_grace_s"].default + 30


def metrics_of(expression: str) -> set[str]:
    """Name the metrics of an expression; a histogram's series are its own."""
    found = re.findall(r"\bknockon_\w+", expression)
    histograms = {name for name, metric in METRICS.items() if metric.kind == "histogram"}
    return {each.rpartition("_")[0] if each.rpartition("_")[0] in histograms else each for each in found}


def labels_of(expression: str) -> set[str]:
    """Name the labels that an expression asks for or groups by."""
    asked = re.findall(r"[{,]\s*(\w+)\s*=", expression)
    grouped = re.findall(r"by \(([\w, ]+)\)", expression)
    return set(asked) | {label.strip() for each in grouped for label in each.split(",")}


def check_expression(expression: str) -> None:
    named = metrics_of(expression)
    assert named
    assert named <= set(METRICS)
    known = {label for name in named for label in METRICS[name].labels}
    is_bucket = "_bucket" in expression
    assert labels_of(expression) <= known | ({"le"} if is_bucket else set())
    assert expression.count("(") == expression.count(")")


def rules() -> Iterator[dict[str, Any]]:
    for group in RULES:
        yield from group["rules"]


@pytest.mark.parametrize("rule", list(rules()), ids=lambda rule: rule["alert"])
def test_each_alert_asks_for_metrics_that_exist_and_names_its_part_of_the_runbook(rule: Any) -> None:
    check_expression(rule["expr"])
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"]
    path, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert path == "docs/runbook.md"
    assert anchor in page("runbook.md").anchors()
    told = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert told <= {label for name in metrics_of(rule["expr"]) for label in METRICS[name].labels}


def test_no_two_alerts_have_one_name() -> None:
    found = [rule["alert"] for rule in rules()]
    assert len(set(found)) == len(found)


def test_the_board_shows_every_metric_and_no_other() -> None:
    targets = [target for panel in BOARD["panels"] for target in panel.get("targets", ())]
    for target in targets:
        check_expression(target["expr"])
        assert target["datasource"]["uid"] == "${datasource}"
    assert {name for target in targets for name in metrics_of(target["expr"])} == set(METRICS)


def test_the_panels_of_the_board_do_not_overlap() -> None:
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for each in (panel["gridPos"] for panel in panels)
        for x in range(each["x"], each["x"] + each["w"])
        for y in range(each["y"], each["y"] + each["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def unit(path: Path) -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # names keep their case
    parser.read(path)
    return parser


@pytest.mark.parametrize("room", Room)
def test_each_process_has_a_unit(room: Room) -> None:
    found = unit(DEPLOY / "systemd" / f"knockon-{room}@.service")
    assert found["Service"]["ExecStart"] == f"/opt/knockon/bin/knockon run {room}"
    assert found["Install"]["WantedBy"] == "knockon.target"


def test_there_is_no_unit_of_anything_else() -> None:
    files = {file.name for file in (DEPLOY / "systemd").glob("*.service")}
    assert files == {f"knockon-{room}@.service" for room in Room}


def test_units_give_a_process_its_time_to_end_and_settings_that_exist() -> None:
    common = unit(COMMON)["Service"]
    assert float(common["TimeoutStopSec"]) >= GRACE_S
    assert common["Restart"] == "always"
    set_there = re.findall(r"^Environment=(\w+)=", COMMON.read_text(), re.MULTILINE)
    assert set_there
    assert set(set_there) <= SETTINGS


@pytest.mark.parametrize("room", Room)
def test_each_process_has_a_container(room: Room) -> None:
    service = COMPOSE["services"][room]
    assert service["command"] == ["run", room]
    assert float(service["stop_grace_period"].removesuffix("s")) >= GRACE_S
    assert set(service["environment"]) <= SETTINGS
    assert service["environment"]["DATABASE_URL"].endswith("@postgres/knockon")
    assert service["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_the_containers_are_complete() -> None:
    services = COMPOSE["services"]
    assert set(services) == {*Room, "postgres", "redis", "migrate", "prometheus", "grafana"}
    told = " ".join(services["redis"]["command"])
    assert "--appendonly yes" in told
    assert "--maxmemory-policy noeviction" in told
    mounted = {volume.partition(":")[0] for each in services.values() for volume in each.get("volumes", ())}
    assert {name for name in mounted if not name.startswith(".")} == set(COMPOSE["volumes"])
    assert all((DEPLOY / "compose" / name).is_dir() for name in mounted if name.startswith("."))


def test_prometheus_asks_where_the_container_of_the_api_tells() -> None:
    asked = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text())
    (job,) = asked["scrape_configs"]
    assert job["static_configs"] == [
        {"targets": [f"api:{COMPOSE['services']['api']['environment']['METRICS_PORT']}"]}
    ]
    assert all((DEPLOY / "prometheus" / name).is_file() for name in asked["rule_files"])


def test_the_image_is_built_from_all_that_the_wheel_needs() -> None:
    lines = (DEPLOY / "compose" / "Dockerfile.dockerignore").read_text().splitlines()
    taken = {line.removeprefix("!") for line in lines if line.startswith("!")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert taken == {*wheel, "pyproject.toml", "README.md", "LICENSE", "requirements-run.lock"}


def test_the_proxy_stands_before_routes_that_exist_and_hides_the_metrics(tmp_path: Path) -> None:
    text = (DEPLOY / "nginx" / "knockon.conf").read_text()
    backends = open_backends(
        Settings(redis_url="redis://nowhere", database_url=f"sqlite:///{tmp_path}/no.db"), pool_size=1
    )
    app = make_app(Settings(), backends)
    routes = set(app.openapi()["paths"])
    named = re.findall(r"location = (\S+) \{", text)
    assert set(named) == {"/v1/logs/stream", "/metrics"}
    assert set(named) <= routes
    assert re.search(r"location = /metrics \{\s+return 404;", text)
    assert int(re.findall(r"client_max_body_size (\d+)m;", text)[0]) * 2**20 > EVENTS_BYTES_MAX
    assert f"server 127.0.0.1:{Settings.model_fields['api_port'].default};" in text
    assert text.count("{") == text.count("}")


def test_haproxy_leads_to_the_primary_alone() -> None:
    text = (DEPLOY / "haproxy" / "redis.cfg").read_text()
    (led_to,) = re.findall(r"default_backend (\w+)", text)
    assert f"\nbackend {led_to}\n" in text
    assert "tcp-check expect string role:master" in text
    assert len(re.findall(r"^  server ", text, re.MULTILINE)) == 2


def test_the_page_names_every_folder() -> None:
    text = (DEPLOY / "README.md").read_text()
    folders = {each.name for each in DEPLOY.iterdir() if each.is_dir()}
    assert set(re.findall(r"^\| \[(\w+)\]", text, re.MULTILINE)) == folders
