"""Masking: which names tell a secret, and what is left of a text, of data and of a definition."""

from typing import Any

import pytest

from shared.masking import is_masked, is_secret_name, mask_definition, mask_text, mask_tree, mask_urls


@pytest.mark.parametrize(
    "name",
    [
        *("token", "api_key", "apiKey", "X-Api-Key", "client_secret", "Set-Cookie", "DB_PASSWORD", "APIKey"),
        *("X-Auth", "X-Auth-Key", "Authorization2", "X-Signature", "X-Hub-Signature-256", "pwd", "userPwd"),
        *("passphrase", "private_key", "privateKey", "Ocp-Apim-Subscription-Key", "aws_access_key", "jwt"),
        *("credentials", "session_id", "signing-key"),
    ],
)
def test_a_telling_name_is_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("tokens", "max_tokens", "secretary", "key", "passwords_changed", "event", "author", "authority"),
        *("passenger", "signed_at", "keyboard", "design", "idempotency_key", "monkey", "automation_key"),
    ],
)
def test_another_name_is_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://:p@ss@host/0", "redis://***@host/0"),
        ("redis://:PW/SEC@127.0.0.1:1/0", "redis://***@127.0.0.1:1/0"),
        ("redis://:1234/SEC@h", "redis://***@h"),
        ("redis://u:1234#SEC@h/0", "redis://***@h/0"),
        ("https://u:PW?SEC#x@h/x", "https://***@h/x"),
        ("at postgresql://u:PW SEC@h:1/d: refused", "at postgresql://***@h:1/d: refused"),
        ("postgresql://u:a/b@c@h/d", "postgresql://***@h/d"),
        (
            "see https://a.test/x@y and postgresql://u:p@h/d",
            "see https://a.test/x@y and postgresql://***@h/d",
        ),
        ("http://a.test:8080/x@y", "http://a.test:8080/x@y"),
        ("http://[::1]:8080/x@y", "http://[::1]:8080/x@y"),
        ("redis://h:6379 is away; ask ann@example.test", "redis://h:6379 is away; ask ann@example.test"),
        ('{"u": "http://h:80", "m": "a@b.test"}', '{"u": "http://h:80", "m": "a@b.test"}'),
        ("mail ann@example.test", "mail ann@example.test"),
        ("postgresql://h/d?sslmode=require&password=SEC", "postgresql://h/d?sslmode=require&password=***"),
    ],
)
def test_a_url_shows_no_secret_and_nothing_else_is_masked(text: str, shown: str) -> None:
    assert mask_urls(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "https://h.test/x?token=SEC&a=1#access_token=SEC",
            "https://h.test/x?token=***&a=1#access_token=***",
        ),
        ("go to https://h.test/?page=2&api%5Fkey=SEC now", "go to https://h.test/?page=2&api%5Fkey=*** now"),
        ('{"Authorization": "Basic x", "a": 1}', '{"Authorization": "***", "a": 1}'),
        ("said Bearer abcdef1234", "said Bearer ***"),
        ("the Basic subscription", "the Basic subscription"),
        ("is it 1? token=no", "is it 1? token=no"),
    ],
)
def test_a_text_shows_no_secret_of_its_urls_or_json(text: str, shown: str) -> None:
    assert mask_text(text) == shown


def test_a_long_text_takes_no_long_time() -> None:
    for piece in ("://a", "a", "a://b:c ", '"a": "', "?a=", "://u:p/"):
        text = "http://" + piece * (200_000 // len(piece))
        assert isinstance(mask_definition(text), str)


def test_a_tree_shows_no_secret_at_any_depth() -> None:
    tree = {
        "a": [{"secret": "s", "url": "https://u:p@h.test/x"}],
        "headers": {"Authorization": "Bearer t", "X-Plain": "1"},
        "token": None,
    }
    assert mask_tree(tree) == {
        "a": [{"secret": "***", "url": "https://***@h.test/x"}],
        "headers": {"Authorization": "***", "X-Plain": "1"},
        "token": None,
    }


def test_what_a_condition_compares_goes_by_the_name_of_its_field() -> None:
    leaf = {"field": "payload.user.password", "op": "eq", "wanted": "SEC", "found": "SEC2"}
    assert mask_tree(leaf) == {**leaf, "wanted": "***", "found": "***"}
    assert mask_definition({"field": "payload.apiKey", "op": "eq", "value": "SEC"})["value"] == "***"
    assert mask_tree({"field": "payload.plan", "op": "eq", "wanted": "pro"})["wanted"] == "pro"


def test_a_definition_shows_no_header_value_and_no_query_value() -> None:
    config = {
        "url": "https://u:p@h.test/x?a=SEC&b={{ payload.id }}&c={{ 'SEC' }}&SEC",
        "headers": {"X-Plain": "SEC", "X-Id": "{{ payload.id }}"},
        "body": {"text": "see https://h.test/?q=SEC#top", "pwd": "SEC"},
    }
    assert mask_definition(config) == {
        "url": "https://***@h.test/x?a=***&b={{ payload.id }}&c=***&***",
        "headers": {"X-Plain": "***", "X-Id": "{{ payload.id }}"},
        "body": {"text": "see https://h.test/?q=***#top", "pwd": "***"},
    }


@pytest.mark.parametrize(
    "value",
    [
        "Bearer {{ secrets.API_TOKEN }}",
        "basic {{ secrets.LOGIN | base64_encode }}",
        "Token token={{ secrets.API_TOKEN }}",
        "ApiKey {{ secrets.A }}{{ secrets.B }}",
    ],
)
def test_a_scheme_before_templates_hides_nothing_and_is_applied_again(value: str) -> None:
    config = {"url": "https://h.test", "headers": {"Authorization": value}, "body": {"token": value}}
    shown = mask_definition(config)
    assert shown == config
    assert not is_masked(value)


@pytest.mark.parametrize(
    "value",
    [
        "Bearer {{ secrets.A }}x",
        "Bearer x{{ secrets.A }}",
        "hunter2 {{ secrets.A }}",
        "Bearer {{ 'SEC' }}",
        "Bearer hunter2",
        "Bearer",
        "Bearer token=",
    ],
)
def test_what_is_more_than_a_scheme_is_masked(value: str) -> None:
    assert mask_definition({"headers": {"Authorization": value}}) == {"headers": {"Authorization": "***"}}


@pytest.mark.parametrize(
    "shown",
    [
        *("***", " *** ", "https://***@h.test", "https://u:***@h.test/x", "https://h.test/?a=***"),
        *("https://h.test/?a=1&b=***&c=2", "https://h.test/?***", "Bearer ***", '{"pwd": "***"}'),
    ],
)
def test_a_masked_text_is_known_again(shown: str) -> None:
    assert is_masked(shown)


@pytest.mark.parametrize("text", ["*** News ***", "a *** b", "https://h.test/***", "what? ***", ""])
def test_stars_of_another_kind_are_text(text: str) -> None:
    assert not is_masked(text)


@pytest.mark.parametrize(
    "tree",
    [
        "https://u:p@h.test/x?a=1&b=2",
        {"url": "https://h.test/?SEC"},
        {"headers": {"X": "1"}},
        {"pwd": "x"},
        "Bearer abcdef12345",
        '{"pwd": "x"}',
    ],
)
def test_what_was_masked_in_a_definition_is_known_again(tree: Any) -> None:
    while isinstance(tree, dict):
        (tree,) = mask_definition(tree).values()
    assert is_masked(mask_definition(tree))
