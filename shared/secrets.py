"""The key of the secret store: SECRETS_KEY, else a file in the data folder (docs/security.md).

Who writes a secret makes the file where there is none; who only reads never does, since a new key opens
nothing that is stored.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shared.errors import ConfigError
from shared.folders import make_private
from shared.seal_keys import KEY_BYTES, read_seal_keys, write_seal_key
from shared.sealing import Seal
from shared.settings import Settings

KEY_FILE: Final = "secrets.key"


@dataclass(frozen=True, slots=True)
class FoundSeal:
    """The seal of this process, and where its key came from: the name of the setting or the file's path."""

    seal: Seal
    source: str


def key_file(settings: Settings) -> Path:
    """Say where the key lies that is used without SECRETS_KEY."""
    return settings.data_dir / KEY_FILE


def find_seal(settings: Settings) -> FoundSeal | None:
    """Give the seal; None where neither setting nor file is there. Raises ConfigError for a bad file."""
    if settings.secrets_key is not None:
        return FoundSeal(Seal(read_seal_keys(settings.secrets_key.get_secret_value())), "SECRETS_KEY")
    file = key_file(settings)
    try:
        text = file.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {type(error).__name__}") from error
    try:
        return FoundSeal(Seal(read_seal_keys(text)), str(file))
    except ValueError as error:
        raise ConfigError(f"{file}: {error}") from None


def make_seal(settings: Settings) -> Seal:
    """Give the seal, with a new key in the data folder where there is none; of two callers one makes it."""
    found = find_seal(settings)
    if found is None:
        _make_key_file(key_file(settings))
        found = find_seal(settings)
    if found is None:
        raise ConfigError(f"{key_file(settings)}: was taken away as soon as it was made")
    return found.seal


def _make_key_file(file: Path) -> None:
    """Write a new key beside the place and link it there, so that nobody ever reads half of one."""
    make_private(file.parent)
    fresh = file.with_name(f"{file.name}-{os.getpid()}-{secrets.token_hex(4)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(write_seal_key(secrets.token_bytes(KEY_BYTES)) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.link(fresh, file)
    except FileExistsError:
        return
    finally:
        fresh.unlink()
