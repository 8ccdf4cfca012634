"""What a dry run says of an episode that waits already, or is spent."""

import json
from datetime import timedelta
from pathlib import Path

from shared.db.subjects import project_changes
from shared.model.subjects import SubjectWrite
from shared.services.backends import Backends
from shared.time.clock import SystemClock, epoch_ms
from tests.commanding import Knockon, document
from tests.pages import ROOT


def test_a_dry_run_says_that_an_episode_waits_already_or_is_spent(
    knockon: Knockon, backends: Backends, tmp_path: Path
) -> None:
    knockon("apply", "-f", str(ROOT / "examples" / "delayed.yaml"))
    now = SystemClock().now()
    stamp = (epoch_ms(now - timedelta(hours=1)), 0)
    with backends.database.begin() as conn:
        write = SubjectWrite("w1", "conversation", "c1", stamp, "c1", {"status": "pending"})
        project_changes(conn, [write], now=now)
    told = {"type": "conversation.updated", "payload": {"conversation": {"id": "c1", "status": "pending"}}}
    event = tmp_path / "event.json"
    event.write_text(json.dumps(told))
    tried = ("automations", "dry-run", "stale-pending", "--event", str(event))
    first = document(knockon(*tried, "-o", "json"))
    assert (first["would_run"], first["waits"]["already"]) == (True, None)
    knockon("automations", "activate", "stale-pending", "--arm-existing")
    (armed,) = document(knockon("pending", "list", "-o", "json"))
    assert f"its episode has {armed['id']} (pending)" in knockon(*tried).stdout
    knockon("pending", "cancel", armed["id"])
    spent = document(knockon(*tried, "-o", "json"))
    assert spent["would_run"] is False
    assert spent["waits"]["already"] == {"id": armed["id"], "status": "skipped"}
