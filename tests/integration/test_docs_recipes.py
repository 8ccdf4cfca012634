"""The recipes of the documentation put an event on the stream that the engine takes."""

import shlex
from typing import Any

import pytest
from redis import Redis

from shared.model.events import Event, decode_entry
from tests.pages import page

PAGE = page("events.md")
ADDRESS = "redis://localhost:6379/0"
PYTHON = [block.text for block in PAGE.blocks("python")]
SHELL = [block.text for block in PAGE.blocks("sh") if block.text.startswith("redis-cli ")]


def published(client: Redis) -> Event:
    answer: Any = client.xrange("factory:events")
    ((entry_id, fields),) = answer
    return decode_entry(entry_id.decode(), fields)


def assert_is_the_example(event: Event) -> None:
    assert (event.type, event.workspace_id) == ("order.placed", "default")
    assert event.payload == {"orderId": 17, "total": 42}
    assert event.key == "s:shop|order-17-placed"


@pytest.mark.parametrize("recipe", PYTHON)
def test_a_recipe_in_python_publishes(recipe: str, redis_url: str, redis_client: Redis) -> None:
    assert ADDRESS in recipe
    exec(compile(recipe.replace(ADDRESS, redis_url), "events.md", "exec"), {})
    assert_is_the_example(published(redis_client))


@pytest.mark.parametrize("recipe", SHELL)
def test_a_recipe_in_the_shell_publishes(recipe: str, redis_client: Redis) -> None:
    _, *command = shlex.split(recipe.replace("\\\n", ""))
    client: Any = redis_client
    client.execute_command(*command)
    assert_is_the_example(published(redis_client))


def test_there_are_recipes_for_each_language() -> None:
    assert (len(PYTHON), len(SHELL), len(PAGE.blocks("javascript")), len(PAGE.blocks("go"))) == (2, 1, 1, 1)
