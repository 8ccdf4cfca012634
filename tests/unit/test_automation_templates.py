"""Templates in the configs of actions are looked at when an automation is saved."""

from typing import Any

import pytest

from shared.errors import DefinitionError
from shared.model.automation import parse_definition

URL = "https://example.test/h"


def faults(action: str, config: dict[str, Any]) -> list[str]:
    """Give the paths of the faults of an automation with one action."""
    actions = [{"type": action, "config": config}]
    with pytest.raises(DefinitionError) as caught:
        parse_definition({"key": "a1", "name": "A", "trigger": {"type": "MANUAL"}, "actions": actions})
    return [fault.path for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"title": "{{ a"}, "actions[0].config.title"),
        ({"title": "a", "body": "{% for i in (1..1000000000) %}x{% endfor %}"}, "actions[0].config.body"),
        ({"title": "a", "body": "{% include 'x' %}"}, "actions[0].config.body"),
    ],
)
def test_a_template_that_cannot_be_rendered_is_refused(config: dict[str, Any], path: str) -> None:
    assert faults("CREATE_NOTIFICATION", config) == [path]


def test_a_template_inside_a_body_is_refused_with_its_place_in_the_body() -> None:
    body = {"items": [1, {"name": "{% if %}"}]}
    assert faults("SEND_WEBHOOK", {"url": URL, "body": body}) == ["actions[0].config.body.items[1].name"]


def test_a_template_in_a_header_and_in_the_url_is_refused_too() -> None:
    config = {"url": f"{URL}/{{{{ a | nofilter }}}}", "headers": {"X-A": "{% endfor %}"}}
    assert faults("SEND_WEBHOOK", config) == ["actions[0].config.url", "actions[0].config.headers.X-A"]
