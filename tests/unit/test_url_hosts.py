"""Whether the text of a URL tells that no webhook may reach its host, in whatever spelling."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from executors.targets import parse_target
from shared.errors import DefinitionError, FatalError
from shared.model.automation import parse_definition
from shared.model.webhook_targets import check_targets
from shared.rules.addresses import literal_address, refusal
from shared.rules.url_hosts import blocked_host

FORBIDDEN = [
    ("http://127.0.0.1/", "loopback"),
    ("http://[::ffff:127.0.0.1]/", "loopback"),
    ("http://2130706433/", "loopback"),
    ("http://0x7f.1/", "loopback"),
    ("http://0177.0.0.1:8080/x", "loopback"),
    ("http://127.1", "loopback"),
    ("http://localhost./", "loopback"),
    ("https://LOCALHOST:443/", "loopback"),
    ("http://a.localhost/", "loopback"),
    ("http://[fd00::1]/", "unique local"),
    ("http://[::1]:80/", "loopback"),
    ("http://[fe80::1%25eth0]/", "scoped"),
    ("http://public.example@127.0.0.1/", "loopback"),
    ("http://{{ user }}:{{ secrets.pw }}@10.0.0.1/", "private"),
    ("http://169.254.169.254/latest/meta-data", "link-local"),
    ("http://127%2e0.0.1/", "loopback"),
    ("http://\uff11\uff12\uff17.0.0.1/", "loopback"),
    ("http://127\u30020\u30020\u30021/", "loopback"),
    ("http://192.168.0.1.?a=b", "private"),
    ("http://10.0.0.1#x", "private"),
    ("http:\\\\10.0.0.1/", "private"),
    ("http://127.0.0.1:\uff18\uff10/", "loopback"),
    ("http://127.0.0.1:\u0661/", "loopback"),
    ("http://[64:ff9b::a9fe:a9fe]/", "link-local"),
]
NOT_YET = [
    "https://hooks.example.test/x",
    "http://8.8.8.8/",
    "https://[2606:4700::1111]/",
    "http://{{ host }}/",
    "http://10.0.0.{{ n }}/",
    "{{ url }}",
    "https://example.test/?u=http://127.0.0.1/",
    "https://example.test/127.0.0.1",
    "https://127.0.0.1.example.test/",
    "https://localhost.example.test/",
    "",
]


@pytest.mark.parametrize(("url", "rule"), FORBIDDEN)
def test_an_address_that_nothing_may_reach_is_seen_in_any_spelling(url: str, rule: str) -> None:
    found = blocked_host(url)
    assert found is not None
    assert found.startswith(rule)


@pytest.mark.parametrize("url", NOT_YET)
def test_what_may_be_reached_or_is_not_known_yet_passes(url: str) -> None:
    assert blocked_host(url) is None


@given(host=st.text("0123456789abcdefxX.:[]%\uff11\u3002\u0661", min_size=1, max_size=24))
@example(host="0x7f.1")
@example(host="0:\uff11")
def test_whatever_the_caller_of_webhooks_reads_as_a_forbidden_address_is_refused_before(host: str) -> None:
    url = f"http://{host}/"
    try:
        address = literal_address(parse_target(url).host)
    except FatalError:
        return
    if address is not None and refusal(str(address)) is not None:
        assert blocked_host(url) is not None


def hook(url: str, key: str = "k") -> Any:
    actions = [
        {"type": "EMIT_EVENT", "config": {"event_type": "order.seen"}},
        {"type": "SEND_WEBHOOK", "config": {"url": url}},
    ]
    trigger = {"type": "MANUAL"}
    return parse_definition({"key": key, "name": "N", "trigger": trigger, "actions": actions})


def test_the_refusal_names_the_path_and_with_several_automations_the_key() -> None:
    good, bad = hook("https://a.example/"), hook("http://u:pw@10.0.0.1/?token=t", "bad")
    check_targets([good])
    with pytest.raises(DefinitionError) as alone:
        check_targets([bad])
    with pytest.raises(DefinitionError) as among:
        check_targets([good, bad])
    assert [fault.path for fault in alone.value.faults] == ["actions[1].config.url"]
    assert [fault.path for fault in among.value.faults] == ["bad.actions[1].config.url"]
    assert "private" in str(alone.value)
    assert "pw" not in str(alone.value)
