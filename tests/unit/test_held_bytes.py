"""Bodies in memory: bounded for all, and for each workspace."""

import pytest

from api.errors import Refused
from api.held_bytes import HeldBytes


def test_bodies_are_held_within_bounds_for_all_and_for_each() -> None:
    held = HeldBytes(100, 60)
    with held.holding("w1") as first, held.holding("w1") as second, held.holding("w2") as other:
        first(40)
        second(20)
        with pytest.raises(Refused) as refused:
            second(1)
        assert (refused.value.status, refused.value.headers["Retry-After"]) == (503, "5")
        other(40)
        with pytest.raises(Refused):
            other(1)
    with held.holding("w1") as again:
        again(60)
