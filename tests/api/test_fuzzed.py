"""What the OpenAPI document allows, and what it does not, is answered as it says: no 500, no other shape.

One check is left out: that what fits the document is accepted. It cannot say what a cursor is, or a cron.
"""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.calling import Api

EXAMPLES = 6
ENDLESS = "/stream"
STEADY = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_what_the_document_allows_is_answered_as_it_says(api: Api) -> None:
    assert try_all(api, GenerationMode.POSITIVE) > 20


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_what_the_document_does_not_allow_is_refused_as_it_says(api: Api) -> None:
    assert try_all(api, GenerationMode.NEGATIVE) > 20


def try_all(api: Api, mode: GenerationMode) -> int:
    """Call every operation with made-up requests of one kind, and check the answers; count the operations."""
    headers = {"Authorization": f"Bearer {api.key()}"}
    schema = schemathesis.openapi.from_url(f"{api.url}/openapi.json")
    tried = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if "security" not in operation.definition.raw or ENDLESS in operation.path:
            continue

        @STEADY
        @given(case=operation.as_strategy(generation_mode=mode))
        def answers(case: Any) -> None:
            case.call_and_validate(headers=headers, timeout=20, excluded_checks=[positive_data_acceptance])

        answers()
        tried += 1
    return tried
