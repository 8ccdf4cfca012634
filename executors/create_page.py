"""CREATE_PAGE: make a page."""

import uuid
from typing import Final

from executors.contract import ActionResult, RunContext
from shared.model.actions import CreatePage
from shared.model.effects import CreateSubject

PAGES: Final = uuid.UUID("b1a7b1f2-8a0f-5a55-9a3c-6f3c0f6f2d41")
FIELD_OF: Final = (("content", "content"), ("properties", "properties"), ("parent_id", "parentId"))


def create_page(config: CreatePage, run: RunContext) -> ActionResult:
    """Ask for the page. An id that is not given follows from run and position: a repeat makes no second."""
    page_id = config.page_id or str(uuid.uuid5(PAGES, run.idempotency_id))
    given = {field: getattr(config, key) for key, field in FIELD_OF if key in config.model_fields_set}
    effect = CreateSubject(
        subject_type="page",
        subject_id=page_id,
        fields={"title": config.title, **given},
        database_id=None,
        event_type="page.created",
        may_exist=config.page_id is None,
    )
    return ActionResult({"pageId": page_id, "title": config.title}, (effect,))
