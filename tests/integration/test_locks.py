"""Named locks: one holder at a time, until it lets go or falls silent."""

import threading
from datetime import UTC, datetime, timedelta

from shared.db.locks import drop_lock, take_lock
from tests.rooms import Room

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOLD = timedelta(seconds=30)


def take(room: Room, owner: str, after_s: float = 0, name: str = "sweep") -> bool:
    now = NOW + timedelta(seconds=after_s)
    return room.database.transact(lambda conn: take_lock(conn, name, owner, now=now, hold=HOLD))


def drop(room: Room, owner: str) -> None:
    room.database.transact(lambda conn: drop_lock(conn, "sweep", owner))


def test_the_holder_keeps_the_lock_and_others_wait(room: Room) -> None:
    assert take(room, "one")
    assert take(room, "one", 10)
    assert not take(room, "two", 39)
    assert take(room, "two", 40.001)
    assert not take(room, "one", 50)


def test_locks_of_other_names_are_other_locks(room: Room) -> None:
    assert take(room, "one")
    assert take(room, "two", name="other")


def test_a_lock_that_was_given_up_is_free_at_once(room: Room) -> None:
    assert take(room, "one")
    drop(room, "two")
    assert not take(room, "two")
    drop(room, "one")
    assert take(room, "two")


def test_of_many_at_once_one_gets_the_lock(room: Room) -> None:
    barrier = threading.Barrier(6)
    won: list[bool] = []

    def race(owner: str) -> None:
        barrier.wait(10)
        won.append(take(room, owner))

    threads = [threading.Thread(target=race, args=(f"p{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(won) == [False] * 5 + [True]
