"""Explanations, dry runs and backtests as documents: in JSON types, masked, the same for command and HTTP."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from shared.db.automations import AutomationRow
from shared.masking import mask_text, mask_tree
from shared.model.sizes import cut_for_show
from shared.model.stamps import format_stamp
from shared.rules.conditions import LeafVerdict
from shared.rules.examining import Check, CheckName
from shared.rules.previewing import PreviewedAction
from shared.services.backtests import Backtest, Example
from shared.services.dry_runs import DryRun
from shared.services.pending_shown import pending_document
from shared.services.recorded import SeenEntry, shown_event
from shared.services.trying_delay import Wait
from shared.services.verdicts import Explained

BLAMED_SHOWN: Final = 10
PENDING_SHOWN: Final = 10
EVENT_BYTES: Final = 65_536
VALUE_BYTES: Final = 4_096


def entry_document(entry: SeenEntry, most_bytes: int = EVENT_BYTES) -> dict[str, Any]:
    """Show an entry of the stream, with its payload cut to a size."""
    return {
        "entry_id": entry.entry_id,
        "state": entry.state,
        "reason": None if entry.reason is None else mask_text(entry.reason),
        "event": None if entry.event is None else shown_event(entry.event, most_bytes),
    }


def brief_document(explained: Explained) -> dict[str, Any]:
    """Show what became of an event and one automation: the run, or what kept it from one."""
    row, run, stopped = explained.automation, explained.run, explained.stopped_by
    is_gate = stopped is not None and stopped.name is CheckName.CONDITIONS
    return {
        "automation": automation_document(row),
        "verdict": explained.verdict,
        "stopped_by": None if stopped is None else check_document(stopped),
        "blamed": _leaves(explained.examination.blamed[:BLAMED_SHOWN]) if is_gate else [],
        "pending": [pending_document(each) for each in explained.pending[:PENDING_SHOWN]],
        "run": None
        if run is None
        else {
            "id": run.id,
            "status": run.status,
            "skip_reason": run.skip_reason,
            "error": mask_tree(run.error),
            "automation_version": run.automation_version,
            "created_at": run.created_at,
        },
    }


def full_document(explained: Explained) -> dict[str, Any]:
    """Show the same, with every check and every leaf."""
    return {
        **brief_document(explained),
        "checks": [check_document(check) for check in explained.examination.checks],
        "leaves": _leaves(explained.examination.leaves),
    }


def dry_run_document(dry: DryRun) -> dict[str, Any]:
    """Show a dry run: what every check says, and what each action would be handed."""
    stopped = dry.examination.stopped_by
    return {
        "automation": automation_document(dry.automation),
        "event": shown_event(dry.event, EVENT_BYTES),
        "would_run": stopped is None and (dry.waits is None or dry.waits.already is None),
        "waits": None if dry.waits is None else _wait(dry.waits),
        "stopped_by": None if stopped is None else check_document(stopped),
        "blamed": _leaves(dry.examination.blamed),
        "checks": [check_document(check) for check in dry.examination.checks],
        "leaves": _leaves(dry.examination.leaves),
        "actions": [_action(action) for action in dry.actions],
    }


def backtest_document(found: Backtest) -> dict[str, Any]:
    """Show a backtest: counts, the leaves that were to blame, examples."""
    return {
        "events": found.events,
        "would_run": found.would_run,
        "delayed": None if found.delayed is None else asdict(found.delayed),
        "no": {str(name): count for name, count in found.no.items()},
        "unreadable": found.unreadable,
        "leaves": [asdict(leaf) for leaf in found.leaves],
        "examples": [_example(example) for example in found.examples],
        "next": None if found.next is None else format_stamp(found.next),
    }


def automation_document(row: AutomationRow) -> dict[str, Any]:
    """Name an automation, with how it stands now."""
    return {
        "id": row.id,
        "key": row.key,
        "name": row.name,
        "status": row.status,
        "version": row.version,
        "deleted_at": row.deleted_at,
    }


def check_document(check: Check) -> dict[str, Any]:
    """Show what one check said."""
    return {
        "check": check.name,
        "passed": check.passed,
        "wanted": check.wanted,
        "found": check.found,
        "reason": check.reason,
    }


def leaf_document(leaf: LeafVerdict) -> dict[str, Any]:
    """Show what one leaf said; large values are cut."""
    shown: dict[str, Any] = mask_tree(asdict(leaf))
    return {**shown, "wanted": _cut(shown["wanted"]), "found": _cut(shown["found"])}


def _leaves(leaves: Sequence[LeafVerdict]) -> list[dict[str, Any]]:
    return [leaf_document(leaf) for leaf in leaves]


def _cut(value: Any) -> Any:
    shown = cut_for_show({"value": value}, VALUE_BYTES)
    return shown.get("value", shown.get("preview"))


def _wait(wait: Wait) -> dict[str, Any]:
    already = None if wait.already is None else {"id": wait.already.id, "status": wait.already.status}
    return {"started_at": wait.started_at, "due_at": wait.due_at, "already": already}


def _action(action: PreviewedAction) -> dict[str, Any]:
    return {
        "position": action.position,
        "type": action.type,
        "config": action.config,
        "missing": list(action.missing),
        "assumed": list(action.assumed),
        "secrets": list(action.secrets),
        "fault": None if action.fault is None else asdict(action.fault),
    }


def _example(example: Example) -> dict[str, Any]:
    return {
        "entry_id": example.entry_id,
        "type": example.type,
        "made": example.made,
        "stopped_by": None if example.check is None else check_document(example.check),
        "blamed": _leaves(example.blamed[:BLAMED_SHOWN]),
    }
