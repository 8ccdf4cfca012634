"""The name is public when it is checked, and private when it is dialled.

Elsewhere the address was checked once and thrown away; the client looked the name up again and reached the
metadata service. Here the very address that was checked is dialled, every attempt looks anew, one private
answer refuses the name, and what an address says by its text is refused when it is saved.
"""

import pytest

from executors.outbound import Network, Outbound
from shared.errors import DefinitionError
from shared.model.automation import parse_definition
from shared.model.webhook_targets import check_targets
from tests.contexts import guarded_way_out
from tests.field.conftest import Open
from tests.field.road import ON_UPDATE, Road
from tests.rooms import tree
from tests.wires import PUBLIC, FakeNames, FakeWire

METADATA = "169.254.169.254"
LITERALS = (
    "http://[::ffff:127.0.0.1]/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://localhost./",
    "http://[fd00::1]/",
    "http://public.example@127.0.0.1/",
)


class Wires:
    """The guarded way out over scripted names; it notes which addresses are dialled."""

    def __init__(self, *answers: list[str]) -> None:
        self.names = FakeNames(answers)
        self.wire = FakeWire(0)

    def open(self, port: int) -> Outbound:
        self.wire.port = port
        return guarded_way_out(Network(self.names, self.wire))


def hook(url: str) -> dict[str, object]:
    return {"type": "SEND_WEBHOOK", "config": {"url": url, "body": {"id": 1}}}


def fail(road: Road, url: str, retries: int) -> str:
    """Run one webhook to its end, which must be a refusal, and give what the row says of it."""
    automation_id = road.automation(hook(url))
    road.update({"name": "x"}, "name")
    road.rest()
    for _ in range(retries):
        road.wait(2)
    run = road.run(automation_id)
    assert (run.status, run.retry_count, road.code(run)) == ("FAILED", retries, "WEBHOOK_BLOCKED")
    assert run.output is None
    return str(tree(run.error)["message"])


def test_a_name_that_turns_private_is_not_dialled_again(open_here: Open) -> None:
    wires = Wires([PUBLIC], [METADATA])
    road = open_here(http=wires.open, script={"/h": [503]})
    told = fail(road, "http://shop.example/h", retries=1)
    assert wires.wire.dialled == [(PUBLIC, 80)]
    assert wires.names.asked == ["shop.example"] * 2
    (post,) = road.receiver.deliveries()
    assert post.headers["host"] == "shop.example"
    assert "shop.example" in told


@pytest.mark.parametrize("answers", [[PUBLIC, "10.0.0.1"], [METADATA], ["fd00::1"]])
def test_one_private_answer_refuses_the_name_at_once(open_here: Open, answers: list[str]) -> None:
    wires = Wires(answers)
    road = open_here(http=wires.open)
    fail(road, "http://shop.example/h", retries=0)
    assert (wires.wire.dialled, road.receiver.connections) == ([], 0)


@pytest.mark.parametrize("url", LITERALS)
def test_a_private_address_is_refused_when_it_is_saved_and_when_it_is_called(
    open_here: Open, url: str
) -> None:
    definition = {"key": "a", "name": "a", "trigger": ON_UPDATE, "actions": [hook(url)]}

    with pytest.raises(DefinitionError) as refused:
        check_targets([parse_definition(definition)])
    assert [fault.path for fault in refused.value.faults] == ["actions[0].config.url"]
    wires = Wires(["127.0.0.1"])
    road = open_here(http=wires.open)
    fail(road, url, retries=0)
    assert (wires.wire.dialled, road.receiver.connections) == ([], 0)
