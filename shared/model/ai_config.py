"""What ASK_AI takes."""

from typing import Annotated, ClassVar, Final

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StringConstraints

from shared.model.action_config import ID_MAX, ActionConfig, Filled, Given
from shared.model.parts import Text

PROMPT_MAX: Final = 200_000
TOKENS_MAX: Final = 32_768

Number = StrictInt | StrictFloat


class AskAi(ActionConfig):
    """Ask a language model behind an interface like OpenAI's. With `json` its answer must be JSON."""

    template_free: ClassVar[frozenset[str]] = frozenset({"model", "max_tokens", "temperature", "json"})

    prompt: Annotated[Filled, StringConstraints(max_length=PROMPT_MAX)]
    system: Annotated[Text | None, Given, Field(max_length=PROMPT_MAX)] = None
    model: Annotated[str | None, Given, Field(max_length=ID_MAX)] = None
    max_tokens: Annotated[StrictInt, Field(ge=1, le=TOKENS_MAX)] = 1024
    temperature: Annotated[Number | None, Field(ge=0, le=2)] = None
    wants_json: StrictBool = Field(default=False, alias="json")
