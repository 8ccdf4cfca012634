"""The account that closes each of these tests does find what is wrong."""

from pathlib import Path

import pytest
from sqlalchemy import text

from tests.system.account import check_account
from tests.system.deployment import Deployment, open_deployment

# What is done to the rows of a run that went well, and how it is undone.
WRONGS = (
    (
        "UPDATE automation_runs SET source_id = 'x' || source_id",
        "UPDATE automation_runs SET source_id = substr(source_id, 2)",
    ),
    ("UPDATE automation_runs SET status = 'RUNNING'", "UPDATE automation_runs SET status = 'SUCCEEDED'"),
    ("UPDATE automation_runs SET status = 'DEAD_LETTER'", "UPDATE automation_runs SET status = 'SUCCEEDED'"),
    ("UPDATE automation_runs SET retry_count = 1", "UPDATE automation_runs SET retry_count = 0"),
    ("UPDATE run_attempts SET lease = 2", "UPDATE run_attempts SET lease = 1"),
)


def change(site: Deployment, statement: str) -> None:
    with site.backends.database.begin() as conn:
        conn.execute(text(statement))


def test_the_account_finds_what_is_wrong(redis_url: str, sqlite_url: str, tmp_path: Path) -> None:
    with open_deployment(redis_url, sqlite_url, tmp_path) as site:
        site.automation(site.hook("/one"))
        site.fleet.start("matcher")
        site.fleet.start("worker")
        site.publish()
        site.await_ended(1)
        for wrong, undone in WRONGS:
            check_account(site)
            change(site, wrong)
            with pytest.raises(AssertionError):
                check_account(site)
            change(site, undone)
        (delivery,) = site.receiver.deliveries()
        site.receiver.take("POST", "/one", delivery.headers, delivery.body)
        check_account(site, repeats=1)
        with pytest.raises(AssertionError):
            check_account(site)
