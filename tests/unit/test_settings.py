"""Settings: what the environment may say, and the one line that stops a start."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from shared.errors import SettingsError
from shared.log_choices import LogFormat, LogLevel
from shared.settings import Settings, load_settings

SECRET = "whsec_" + "c2VjcmV0" * 5


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start each test in an empty folder with none of our variables set."""
    monkeypatch.chdir(tmp_path)
    for name, field in Settings.model_fields.items():
        monkeypatch.delenv(field.alias or name.upper(), raising=False)


def test_the_defaults_stand_where_nothing_is_set(tmp_path: Path) -> None:
    settings = load_settings()
    assert settings.redis_url is None
    assert settings.events_stream == "factory:events"
    assert settings.data_dir == tmp_path / ".knockon"
    assert (settings.automations_worker_concurrency, settings.run_lease_s) == (5, 60.0)


def test_an_alias_and_a_field_name_both_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOCKON_PREFIX", "blue:")
    monkeypatch.setenv("RUN_LEASE_S", "0.5")
    monkeypatch.setenv("LEASE_RENEW_S", "0.1")
    monkeypatch.setenv("LOG_LEVEL", "WARNING")
    settings = load_settings()
    assert (settings.prefix, settings.run_lease_s, settings.log_level) == ("blue:", 0.5, LogLevel.WARNING)


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "")
    assert load_settings().redis_url is None


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LOG_FORMAT=json\nEVENTS_STREAM=from:file\nUNKNOWN=1\n")
    monkeypatch.setenv("EVENTS_STREAM", "from:environment")
    settings = load_settings()
    assert (settings.events_stream, settings.log_format) == ("from:environment", LogFormat.JSON)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "http://localhost"),
        ("REDIS_URL", "redis://"),
        ("DATABASE_URL", "mysql://localhost/x"),
        ("KNOCKON_PREFIX", "a b"),
        ("EVENTS_STREAM", "x\ny"),
        ("EVENTS_MAXLEN", "0"),
        ("AUTOMATIONS_WORKER_CONCURRENCY", "0"),
        ("AUTO_RUN_MAX_RETRIES", "-1"),
        ("AUTOMATION_MAX_DEPTH", "five"),
        ("ACTION_TIMEOUT_MS", "1.5"),
        ("RUN_LEASE_S", "inf"),
        ("RUN_LEASE_S", "20"),
        ("WATCHDOG_STALE_S", "-3"),
        ("WEBHOOK_ALLOW_PRIVATE", "maybe"),
        ("WEBHOOK_SECRET", "whsec_short"),
        ("WEBHOOK_SECRET", "whsec_c2hvcnQ="),
        ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"),
    ],
)
def test_a_bad_value_is_told_in_one_line_that_names_it(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value).startswith(f"{name}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("EVENTS_STREAM", "x y", "EVENTS_STREAM: may hold A to Z"),
        ("EVENTS_MAXLEN", "0", "EVENTS_MAXLEN: must be at least 1000 (it is '0')"),
        ("ACTION_TIMEOUT_MS", "1.5", "ACTION_TIMEOUT_MS: must be a whole number"),
        ("RUN_LEASE_S", "inf", "RUN_LEASE_S: must be a finite number"),
        ("WEBHOOK_ALLOW_PRIVATE", "maybe", "WEBHOOK_ALLOW_PRIVATE: must be true or false"),
        ("LOG_FORMAT", "xml", "LOG_FORMAT: must be one of auto, console, json"),
    ],
)
def test_a_bad_value_is_told_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value).startswith(told)


def test_every_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_LEVEL", "loud")
    monkeypatch.setenv("RUN_MAX_CRASHES", "0")
    with pytest.raises(SettingsError, match=r"RUN_MAX_CRASHES: .*; LOG_LEVEL: "):
        load_settings()


BAD_URLS = [
    ("REDIS_URL", "redis://:PWSEC/RET@127.0.0.1:1/0", "%2F for /"),
    ("REDIS_URL", "redis://u:PWSEC#RET@127.0.0.1", "%23 for #"),
    ("REDIS_URL", "redis://:12?PWSEC=RET@127.0.0.1", "%3F for ?"),
    ("REDIS_URL", "redis://:PWSEC RET@127.0.0.1", "blank"),
    ("REDIS_URL", "redis://u:PWSEC@host:notaport/0", "port"),
    ("REDIS_URL", "redis://u:PWSEC@host:70000/0", "port"),
    ("REDIS_URL", "redis://[::1", "host"),
    ("REDIS_URL", "redis://[zz::1]:1", "host"),
    ("REDIS_URL", "redis://127.0.0.1:1/0?foo=bar", "parameter foo"),
    ("REDIS_URL", "redis://127.0.0.1:1/0?socket_timeout=PWSEC", "a value that cannot be read"),
    ("REDIS_URL", "redis://127.0.0.1/abc", "database number"),
    ("REDIS_URL", "unix:///", "socket"),
    ("DATABASE_URL", "postgresql://u:PWSEC@h:notaport/x", "port"),
    ("DATABASE_URL", "postgresql://u:PWSEC@h:99999/x", "port"),
    ("DATABASE_URL", "postgresql://u:PWSEC@[::1/x", "host"),
    ("DATABASE_URL", "postgresql://u:PWSEC@[::1]x/x", "host"),
    ("DATABASE_URL", "postgresql://u:PWSEC@RET@h/x", "host"),
    ("DATABASE_URL", "postgresql://h/x?foo=bar", "parameter foo"),
    ("DATABASE_URL", "sqlite:///:memory:", "no file"),
    ("DATABASE_URL", "sqlite:///file:x?mode=memory", "no file"),
    ("DATABASE_URL", "sqlite://host/x.db", "three slashes"),
    ("DATABASE_URL", "sqlite:///x.db?timeout=1", "no parameters"),
]


@pytest.mark.parametrize(("name", "url", "told"), BAD_URLS)
def test_a_bad_url_is_told_in_one_line_without_its_password(
    monkeypatch: pytest.MonkeyPatch, name: str, url: str, told: str
) -> None:
    monkeypatch.setenv(name, url)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    said = str(caught.value)
    assert said.startswith(f"{name}: ")
    assert told in said
    assert not any(part in said for part in ("PWSEC", "RET", "\n"))


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("REDIS_URL", "redis://u:p@[::1]:6379/3"),
        ("REDIS_URL", "unix:///a b/redis.sock?db=2&password=a@b"),
        ("REDIS_URL", "rediss://h/0?ssl_cert_reqs=none"),
        ("REDIS_URL", "redis:///0"),
        ("DATABASE_URL", "postgresql://u:a/b#c?d e[f]g@h/x?sslmode=require"),
        ("DATABASE_URL", "postgresql:///x?host=/var/run/postgresql"),
        ("DATABASE_URL", "postgresql://u:p@[::1]:5432/x"),
        ("DATABASE_URL", "sqlite:///rel.db"),
    ],
)
def test_a_good_url_is_taken(monkeypatch: pytest.MonkeyPatch, name: str, url: str) -> None:
    monkeypatch.setenv(name, url)
    assert getattr(load_settings(), name.lower()) == url


@pytest.mark.parametrize("name", ["REDIS_URL", "DATABASE_URL", "WEBHOOK_SECRET"])
def test_a_refusal_shows_no_secret(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "ftp://ann:opensesame@host")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert "opensesame" not in str(caught.value)


def test_two_secrets_are_in_force_while_one_replaces_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", f"{SECRET} {SECRET.removeprefix('whsec_')}")
    found = load_settings().webhook_secret
    assert found is not None
    assert found.get_secret_value().split()[0] == SECRET


@pytest.mark.parametrize("value", [f"{SECRET} {SECRET} {SECRET}", f"{SECRET} AAAA", " "])
def test_three_secrets_a_short_one_or_none_are_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", value)
    with pytest.raises(SettingsError, match="WEBHOOK_SECRET"):
        load_settings()


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe=1")
    with pytest.raises(SettingsError, match=r"^\.env: cannot be read"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('LOG_LEVEL=info\nREDIS_URL="redis://:opensesame@h\n', 2),
        ("REDIS_URL='redis://:opensesame@h\nLOG_LEVEL=info\n", 1),
        ('LOG_LEVEL="info"\nA="opensesame\nB="c"\n', 2),
        ("# of ours\n\nREDIS_URL: redis://:opensesame@h\n", 3),
        ("REDIS_URL:redis://:opensesame@h\n", 1),
        ("REDIS_URL:=redis://:opensesame@h\n", 1),
        ("\n \n\nopensesame\nLOG_LEVEL=info", 4),
        ("export opensesame", 1),
        ("=opensesame\n", 1),
        ("LOG_LEVEL=info\r\n = opensesame\r\n", 2),
        ("LOG_LEVEL='info' opensesame\n", 1),
    ],
)
def test_a_line_of_the_file_that_cannot_be_read_stops_the_start(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / ".env").write_bytes(text.encode())
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value) == f".env: line {line} cannot be read"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \n",
        "# of ours\n\n  # more\n",
        "LOG_LEVEL=info # more\n",
        "A=\n",
        "export LOG_LEVEL = 'info'",
        'A="two\nlines"\n',
    ],
)
def test_what_is_well_formed_in_the_file_is_taken(tmp_path: Path, text: str) -> None:
    (tmp_path / ".env").write_text(f"{text}\nexport EVENTS_STREAM=from:file\n")
    assert load_settings().events_stream == "from:file"


def test_a_file_that_is_a_folder_or_leads_nowhere_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    with pytest.raises(SettingsError, match=r"^\.env: cannot be read: it is not a file$"):
        load_settings()
    (tmp_path / ".env").rmdir()
    (tmp_path / ".env").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match=r"^\.env: cannot be read: it is not a file$"):
        load_settings()


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load_settings().prefix = "other"  # type: ignore[misc]


def test_repr_shows_no_secret() -> None:
    settings = Settings(redis_url="redis://:opensesame@host/0", webhook_secret=SECRET)
    assert "opensesame" not in repr(settings)
    assert SECRET not in repr(settings)
    assert "redis://***@host/0" in str(settings)
