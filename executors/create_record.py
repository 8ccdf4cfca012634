"""CREATE_RECORD: make a record in a database."""

import uuid
from typing import Final

from executors.contract import ActionResult, RunContext
from shared.model.actions import CreateRecord
from shared.model.effects import CreateSubject

RECORDS: Final = uuid.UUID("6f0f6a0e-52a4-5d0e-9d0b-2f1d3c1f7a55")


def create_record(config: CreateRecord, run: RunContext) -> ActionResult:
    """Ask for the record. An id that is not given follows from run and position: a repeat makes no second."""
    record_id = config.record_id or str(uuid.uuid5(RECORDS, run.idempotency_id))
    effect = CreateSubject(
        subject_type="record",
        subject_id=record_id,
        fields=config.properties,
        database_id=config.database_id,
        event_type="record.created",
        may_exist=config.record_id is None,
    )
    return ActionResult({"recordId": record_id, "databaseId": config.database_id}, (effect,))
