"""The language model that the operator names: where it is asked, and as whom."""

from dataclasses import dataclass, field

from shared.settings import Settings


@dataclass(frozen=True, slots=True)
class AiService:
    """A service with an interface like OpenAI's. Without `base_url` there is none."""

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None


def ai_service(settings: Settings) -> AiService:
    """Read the service of a process from its settings."""
    key = settings.ai_api_key
    return AiService(settings.ai_base_url, key.get_secret_value() if key else None, settings.ai_model)
