"""How long a process waits for SQL: what takes longer ends, and is told as what it is."""

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from api.errors import answer_for
from shared.db.engine import OVERFLOW, POSTGRES_LINK, Patience, open_database


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_statement_that_takes_too_long_is_a_server_that_does_not_answer(database_url: str) -> None:
    database = open_database(database_url, patience=Patience(lock_s=1, statement_s=0.1))
    with pytest.raises(DBAPIError) as caught, database.read() as conn:
        conn.execute(text("SELECT pg_sleep(20)"))
    database.dispose()
    answer = answer_for(caught.value)
    assert answer is not None
    assert (answer.status, answer.message) == (503, "the database took too long")


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_link_is_watched_and_what_the_url_says_of_it_goes_before(database_url: str) -> None:
    url = make_url(database_url).update_query_dict(
        {"keepalives_idle": "77", "options": "-c application_name=theirs"}
    )
    database = open_database(url.render_as_string(hide_password=False), patience=Patience(lock_s=3))
    with database.read() as conn:
        told = conn.connection.driver_connection.info.get_parameters()  # type: ignore[union-attr]
        shown = conn.execute(
            text("SELECT current_setting('lock_timeout'), current_setting('application_name')")
        ).one()
    database.dispose()
    assert (told["keepalives_idle"], told["tcp_user_timeout"]) == (
        "77",
        str(POSTGRES_LINK["tcp_user_timeout"]),
    )
    assert tuple(shown) == ("3s", "theirs")


def test_a_connection_is_not_waited_for_longer_than_said(database_url: str) -> None:
    database = open_database(database_url, pool_size=1, patience=Patience(connection_s=0.1))
    held = [database.read() for _ in range(1 + OVERFLOW)]
    for each in held:
        each.__enter__()
    with pytest.raises(PoolExhausted), database.read():
        pass
    for each in held:
        each.__exit__(None, None, None)
    database.dispose()
