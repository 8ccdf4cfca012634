"""How the command tells of an option's value that it cannot take."""

import pytest
from typer.testing import CliRunner

from knockon.cli.app import make_app


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("runs", "list", "--status", "bad"), "'bad' is not one of 'pending', "),
        (("runs", "list", "-o", "x"), "'x' is not one of 'table', 'json'"),
        (("runs", "list", "-n", "x"), "must be a whole number"),
        (("runs", "list", "-n", "0"), "must be at least 1"),
        (("runs", "list", "-n", "1001"), "must be at most 1000"),
        (("publish", "a.b", "-f", "x"), "give only one of TYPE and --file"),
        (("publish", "-f", ""), "give a file, or - for stdin"),
        (("apply", "-f", ""), "give a file, or - for stdin"),
        (("dead", "replay"), "give run ids, --automation KEY or --all"),
        (("dead", "replay", "--all", "--automation", "x"), "give only one of run ids, --automation KEY and"),
        (("dead", "replay", "--all", "r1"), "give only one of run ids, --automation KEY and"),
        (("events", "requeue"), "give ids, or --all"),
        (("events", "requeue", "--all", "1-1"), "give only one of ids and --all"),
    ],
)
def test_a_bad_value_is_told_in_plain_words(arguments: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(make_app(), arguments)
    assert result.exit_code == 2
    assert f": {told}" in result.stderr
    assert not any(word in result.stderr for word in ("Input should", "Value error"))
