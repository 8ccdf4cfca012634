"""The runs that a bulk operation is about: counted, found page by page in the order of their ids, locked.

The status stands in each statement as it is, with what the partial indexes over it say, so that they can be
chosen; all that would lead a plan to an index over finished runs is compared through an expression.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.sql import Sql, sql
from shared.db.types import write_instant
from shared.model.moves import RunStatus

FIRST: Final = ""

_ENDED: Final[Mapping[str, str]] = {
    "since": " AND r.ended_at >= :since",
    "until": " AND r.ended_at < :until",
}
_MADE: Final[Mapping[str, str]] = {
    "since": " AND r.created_at >= :since",
    "until": " AND r.created_at < :until",
}
_MARK: Final = " AND r.fingerprint = :fingerprint"
_CLAUSES: Final[Mapping[str, str]] = {
    "automation_id": " AND (r.automation_id || '') = :automation_id",
    "code": " AND r.error ->> 'code' = :code",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which runs: those up to `until_id` that are in a status, and came to rest there by `at` if they did.

    So what happens after a preview at `at` adds none: neither new runs, nor old ones that fail later.
    """

    workspace_id: str
    status: RunStatus
    at: datetime
    until_id: str
    automation_id: str | None = None
    fingerprint: str | None = None
    code: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def given(self) -> dict[str, str]:
        """Give the filters that are set, as parameters."""
        instants = {"since": self.since, "until": self.until}
        texts = {"automation_id": self.automation_id, "fingerprint": self.fingerprint, "code": self.code}
        found = {name: write_instant(value) for name, value in instants.items() if value is not None}
        return {name: value for name, value in texts.items() if value is not None} | found

    @property
    def bounds(self) -> dict[str, Any]:
        """Give what bounds every look at these runs, as parameters."""
        return {"workspace_id": self.workspace_id, "until_id": self.until_id, "at": write_instant(self.at)}


NEWEST: Final = sql(
    "SELECT r.id FROM automation_runs r WHERE r.workspace_id = :workspace_id ORDER BY r.id DESC LIMIT 1"
)


def newest_run(conn: Connection, workspace_id: str) -> str:
    """Give the id of a workspace's newest run; FIRST where there is none."""
    return NEWEST.run(conn, {"workspace_id": workspace_id}).scalar() or FIRST


@lru_cache
def _where(status: RunStatus, given: tuple[str, ...]) -> str:
    return f"{_walked(status, given)} AND {_looked(status, given)}"


def _walked(status: RunStatus, given: tuple[str, ...]) -> str:
    """Write what an index knows of these runs."""
    mark = _MARK if "fingerprint" in given else ""
    return (
        f"FROM automation_runs r WHERE r.workspace_id = :workspace_id AND r.status = '{status}'"
        f" AND r.status <> 'SUCCEEDED' AND r.id <= :until_id{mark}"
    )


def _looked(status: RunStatus, given: tuple[str, ...]) -> str:
    """Write what is looked at run by run."""
    clauses = {**_CLAUSES, **(_MADE if status is RunStatus.PENDING else _ENDED)}
    found = "".join(clauses[name] for name in given if name in clauses)
    return f"(r.ended_at IS NULL OR r.ended_at <= :at){found}"


@lru_cache
def _counting(status: RunStatus, given: tuple[str, ...]) -> Sql:
    return sql(
        f"SELECT count(*) AS looked, count(CASE WHEN {_looked(status, given)} THEN 1 END) AS fitting FROM ("
        "SELECT r.automation_id, r.error, r.created_at, r.ended_at"
        f" {_walked(status, given)} ORDER BY r.id LIMIT :most) r"
    )


@lru_cache
def _finding(status: RunStatus, given: tuple[str, ...]) -> Sql:
    return sql(f"SELECT r.id {_where(status, given)} AND r.id > :after_id ORDER BY r.id LIMIT :most")


@dataclass(frozen=True, slots=True)
class Counted:
    """How many runs fit among those that were looked at, and whether there were more to look at."""

    count: int
    is_more: bool


def count_selected(conn: Connection, selection: Selection, *, most: int) -> Counted:
    """Count these runs among the first `most` that have the status, and the fingerprint if one is asked."""
    given = selection.given
    statement = _counting(selection.status, tuple(given))
    row = statement.run(conn, {**selection.bounds, **given, "most": most + 1}).one()
    return Counted(min(row.fitting, most), row.looked > most)


def find_selected(conn: Connection, selection: Selection, *, after_id: str, most: int) -> list[str]:
    """Name the next of these runs, by id, beyond `after_id`."""
    given = selection.given
    values = {**selection.bounds, **given, "after_id": after_id, "most": most}
    return list(_finding(selection.status, tuple(given)).run(conn, values).scalars())


LOCK_SELECTED: Final = sql(
    """
    SELECT r.id, r.automation_id, a.deleted_at FROM automation_runs r JOIN {rows} ON r.id = x.id
    LEFT JOIN automations a ON a.id = r.automation_id
    WHERE (r.status || '') = :status AND (r.ended_at IS NULL OR r.ended_at <= :at)
    ORDER BY r.id {lock}
    """,
    id="text",
)


@dataclass(frozen=True, slots=True)
class SelectedRun:
    """A run that is as it was found, locked until the transaction ends."""

    id: str
    automation_id: str | None
    is_orphan: bool


def lock_selected(conn: Connection, selection: Selection, run_ids: Iterable[str]) -> list[SelectedRun]:
    """Lock those of these runs that nobody has moved since they were found; tell whose automation is gone."""
    rows = LOCK_SELECTED.run_set(
        conn,
        ({"id": run_id} for run_id in run_ids),
        status=selection.status,
        at=write_instant(selection.at),
    )
    return [SelectedRun(row.id, row.automation_id, row.deleted_at is not None) for row in rows]
