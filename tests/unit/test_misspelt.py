"""Which names look like settings of ours that are misspelt."""

import pytest

from shared.misspelt import misspelt
from shared.settings import Settings

OURS = [(field.alias or name).upper() for name, field in Settings.model_fields.items()]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("KNOCKON_DATADIR", "KNOCKON_DATA_DIR"),
        ("KNOCKON_REDIS_URL", "REDIS_URL"),
        ("KNOCKON_WORKSPCE", "KNOCKON_WORKSPACE"),
        ("knockon_prefx", "KNOCKON_PREFIX"),
        ("AUTOMATION_WORKER_CONCURRENCY", "AUTOMATIONS_WORKER_CONCURRENCY"),
        ("AUTOMATIONS_MAX_DEPTH", "AUTOMATION_MAX_DEPTH"),
        ("AUTO_RUN_MAX_RETRY", "AUTO_RUN_MAX_RETRIES"),
        ("WEBHOOKS_SECRET", "WEBHOOK_SECRET"),
        ("WEBHOOK_ALLOW_PRIVAT", "WEBHOOK_ALLOW_PRIVATE"),
        ("RUN_LEASE", "RUN_LEASE_S"),
        ("RUN_LEASE_MS", "RUN_LEASE_S"),
        ("REDIS_ULR", "REDIS_URL"),
        ("LOGLEVEL", "LOG_LEVEL"),
    ],
)
def test_a_name_that_resembles_one_of_ours_is_told_with_it(name: str, meant: str) -> None:
    assert misspelt(["PATH", name]) == {name: meant}


@pytest.mark.parametrize(
    "name",
    [
        *OURS,
        *map(str.lower, OURS),
        "KNOCKON_WORKSPACE",
        "KNOCKON_FAULT",
        "KNOCKON_TEST_SERVERS",
        "PATH",
        "SMTP_HOST",
        "WATCHDOG_USEC",
        "SSL_CERT_FILE",
        "REDIS_HOST",
        "TEST_DATABASE_URL",
        "GITHUB_WEBHOOK_SECRET",
        "APP_LOG_LEVEL",
        "DATABASE_HOST",
        "AUTOMATION_TOKEN",
    ],
)
def test_foreign_names_and_ours_are_left_alone(name: str) -> None:
    assert misspelt([name]) == {}


def test_what_stands_beside_the_setting_it_resembles_is_foreign() -> None:
    assert misspelt(["DATABASE_URL", "DATABASE_URI"]) == {}
