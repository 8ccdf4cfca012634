"""What a webhook's config refuses once its templates are filled: nothing in it is a template any more."""

from typing import Any

import pytest

from shared.errors import FatalError
from shared.model.actions import ActionConfig, Assign, SendWebhook
from shared.rules.rendering import CONFIG_INVALID, render_config

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def rendered(scope: dict[str, Any], **keys: Any) -> SendWebhook:
    """Render a webhook of which a test names only what it is about."""
    config = SendWebhook.model_validate({"url": "https://example.test/h", **keys})
    return render_config(config, scope).config


@pytest.mark.parametrize(
    ("url", "scope", "sent"),
    [
        ("https://h.test/?n={{ n }}", {"n": "Ada Lovelace"}, "https://h.test/?n=Ada%20Lovelace"),
        ("https://h.test/?n={{ n }}&m=1", {"n": "a?b c"}, "https://h.test/?n=a?b%20c&m=1"),
        ("{{ base }}/x", {"base": "https://h.test"}, "https://h.test/x"),
        ("https://h.test/{{ n }}", {"n": "{{n}}"}, "https://h.test/{{n}}"),
    ],
)
def test_a_filled_url_is_called_with_the_blanks_of_its_query_encoded(
    url: str, scope: dict[str, Any], sent: str
) -> None:
    assert rendered(scope, url=url).url == sent


@pytest.mark.parametrize(
    "base",
    [
        "{{ x }}",
        "{{x}}://evil.test",
        "{%x%}",
        "ftp://h.test",
        "h.test",
        "https://h.test/a b",
        "https://h.test/?a=b\nc",
        "https://h.test/?a=\x00",
        "https://u@h.test@evil.test",
        "https://{{x}}@h.test:port/",
        "",
        None,
    ],
)
def test_a_url_that_customers_filled_is_checked_like_any_other(base: str | None) -> None:
    with pytest.raises(FatalError) as caught:
        rendered({"base": base}, url="{{ base }}")
    assert caught.value.code == CONFIG_INVALID
    assert "url" in caught.value.message


def test_a_secret_that_is_not_there_is_refused_and_not_left_out() -> None:
    with pytest.raises(FatalError) as caught:
        rendered({"secrets": {}}, secret="{{ secrets.gone }}")
    assert (caught.value.code, "secret" in caught.value.message) == (CONFIG_INVALID, True)


@pytest.mark.parametrize("value", ["", None, "not base64!", "whsec_", "{{ x }}", "{% x %}"])
def test_a_secret_that_signs_nothing_is_refused_without_being_shown(value: str | None) -> None:
    with pytest.raises(FatalError) as caught:
        rendered({"secrets": {"hook": value}}, secret="{{ secrets.hook }}")
    assert caught.value.code == CONFIG_INVALID
    assert not value or value not in caught.value.message


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (Assign(assignee_id="{{ nope }}"), "assignee_id"),
        (Assign(assignee_id=None, team_id="{{ conversation.team }}"), "team_id"),
        (SendWebhook(url="https://h.test", content_type="text/plain", body="{{ nope }}"), "body"),
    ],
)
def test_a_null_that_means_something_comes_from_no_template(config: ActionConfig, key: str) -> None:
    with pytest.raises(FatalError, match=f"{key}: its template gave nothing") as caught:
        render_config(config, {"conversation": {"team": None}})
    assert caught.value.code == CONFIG_INVALID


def test_a_null_that_is_written_stays_one() -> None:
    config = Assign(assignee_id=None, team_id="{{ team }}")
    assert render_config(config, {"team": "t1"}).config == Assign(assignee_id=None, team_id="t1")


def test_a_secret_that_is_there_is_used() -> None:
    assert rendered({"secrets": {"hook": SECRET}}, secret="{{ secrets.hook }}").secret == SECRET
    assert rendered({}).secret is None
