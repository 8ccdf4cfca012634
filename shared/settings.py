"""Every setting, read once at the start from the environment and from `.env` in the working folder.

A process calls `load_settings` first of all and hands the result down; nothing else takes settings there.
"""

import re
from email.utils import parseaddr
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as SourceError

from shared.env_file import ENV_FILE, names_in_file
from shared.errors import SettingsError
from shared.log_choices import LogFormat, LogLevel
from shared.masking import mask_urls
from shared.model.plain_words import words_for
from shared.seal_keys import read_seal_keys
from shared.server_urls import check_database_url, check_redis_url
from shared.signing import read_keys

DAY_S: Final = 86_400
SHOWN_CHARS: Final = 40
_NOT_OF_A_KEY: Final = re.compile(r"[^A-Za-z0-9:._\-]")


class SmtpTls(StrEnum):
    """How a mail server is spoken to: STARTTLS first of all, TLS from the start, or in the clear."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _check_signing_secret(secret: SecretStr) -> SecretStr:
    if not all(24 <= len(key) <= 64 for key in read_keys(secret.get_secret_value())):
        raise ValueError("must hold 24 to 64 bytes in base64, after an optional whsec_")
    return secret


def _check_secrets_key(secret: SecretStr) -> SecretStr:
    read_seal_keys(secret.get_secret_value())
    return secret


def _check_mail_address(text: str) -> str:
    local, at, domain = parseaddr(text)[1].rpartition("@")
    if not (local and at and domain):
        raise ValueError("must be a mail address, with a name before it or without")
    return text


def _check_http_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an http or https URL")
    return text.rstrip("/")


def _check_key(text: str) -> str:
    if _NOT_OF_A_KEY.search(text):
        raise ValueError("may hold A to Z, a to z, 0 to 9 and : . _ - only")
    return text


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


Seconds = Annotated[float, Field(gt=0, le=DAY_S, allow_inf_nan=False)]
RedisUrl = Annotated[str, AfterValidator(check_redis_url)]
DatabaseUrl = Annotated[str, AfterValidator(check_database_url)]
SigningSecret = Annotated[SecretStr, AfterValidator(_check_signing_secret)]
SecretsKey = Annotated[SecretStr, AfterValidator(_check_secrets_key)]
MailAddress = Annotated[str, AfterValidator(_check_mail_address)]
HttpUrl = Annotated[str, AfterValidator(_check_http_url)]
Folder = Annotated[Path, AfterValidator(_absolute)]
Key = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_check_key)]
KeyPrefix = Annotated[str, Field(max_length=64), AfterValidator(_check_key)]


class Settings(BaseSettings):
    """The settings of one process. A variable is a field's name, or alias, in capitals."""

    model_config = SettingsConfigDict(
        env_file=ENV_FILE,
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    redis_url: RedisUrl | None = None
    database_url: DatabaseUrl | None = None
    data_dir: Folder = Field(default=Path(".knockon"), validate_default=True, alias="KNOCKON_DATA_DIR")
    prefix: KeyPrefix = Field(default="", alias="KNOCKON_PREFIX")
    events_stream: Key = "factory:events"
    events_maxlen: int = Field(default=1_000_000, ge=1_000, le=10**12)

    automations_worker_concurrency: int = Field(default=5, ge=1, le=500)
    auto_run_max_retries: int = Field(default=8, ge=0, le=100)
    automation_max_depth: int = Field(default=5, ge=1, le=100)
    action_timeout_ms: int = Field(default=30_000, ge=1, le=3_600_000)

    run_lease_s: Seconds = 60.0
    run_max_crashes: int = Field(default=3, ge=1, le=100)
    lease_renew_s: Seconds = 15.0
    claim_idle_s: Seconds = 60.0
    handle_lost_s: Seconds = 30.0
    watchdog_stale_s: Seconds = 900.0
    watchdog_leases_s: Seconds = 15.0
    watchdog_handles_s: Seconds = 60.0
    shutdown_grace_s: Seconds = 25.0
    retention_days: int = Field(default=30, ge=2, le=36_500)

    timers_interval_s: Seconds = 1.0
    schedule_catchup_s: Annotated[float, Field(ge=0, le=30 * DAY_S, allow_inf_nan=False)] = 3_600.0
    delay_expiry_h: Annotated[float, Field(gt=0, le=8_760, allow_inf_nan=False)] = 72.0

    webhook_allow_private: bool = False
    webhook_secret: SigningSecret | None = None
    secrets_key: SecretsKey | None = None

    smtp_host: str | None = None
    smtp_port: int = Field(default=587, ge=1, le=65_535)
    smtp_user: str | None = None
    smtp_password: SecretStr | None = None
    smtp_from: MailAddress | None = None
    smtp_tls: Annotated[SmtpTls, BeforeValidator(_lower)] = SmtpTls.STARTTLS

    ai_base_url: HttpUrl | None = None
    ai_api_key: SecretStr | None = None
    ai_model: str | None = None

    api_host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    api_port: int = Field(default=8420, ge=0, le=65_535)
    metrics_host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    metrics_port: Annotated[int, Field(ge=1, le=65_535)] | None = None

    log_level: Annotated[LogLevel, BeforeValidator(_lower)] = LogLevel.INFO
    log_format: Annotated[LogFormat, BeforeValidator(_lower)] = LogFormat.AUTO

    @model_validator(mode="after")
    def _renews_in_time(self) -> Self:
        if self.lease_renew_s * 2 > self.run_lease_s:
            raise ValueError("RUN_LEASE_S: must be at least twice LEASE_RENEW_S")
        return self

    @model_validator(mode="after")
    def _mail_has_a_sender(self) -> Self:
        if self.smtp_host and not self.smtp_from:
            raise ValueError("SMTP_FROM: is needed with SMTP_HOST: the address that mail comes from")
        if bool(self.smtp_user) != bool(self.smtp_password):
            raise ValueError("SMTP_USER: and SMTP_PASSWORD go together")
        return self

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """Name the fields for `repr`, without what URLs hide."""
        return [
            (name, mask_urls(value) if isinstance(value, str) else value)
            for name, value in super().__repr_args__()
        ]


def load_settings() -> Settings:
    """Read the settings of this process.

    Raises SettingsError with one line that names each variable at fault, or the line of the file, and
    shows no secret.
    """
    names_in_file()
    try:
        return Settings()
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise SettingsError("; ".join(_tell(fault) for fault in faults)) from None
    except (SourceError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{ENV_FILE}: cannot be read: {error}") from None


def _tell(fault: ErrorDetails) -> str:
    message = words_for(fault).replace("\n", " ")
    where = fault["loc"]
    if not where:
        return message
    name = str(where[0])
    told = "" if name.lower().endswith(("_url", "_secret", "_key")) else f" (it is {_shown(fault['input'])})"
    return f"{name.upper()}: {message}{told}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
