"""Which errors the data is to blame for: the same statement with other rows would have gone through."""

from typing import Final

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError

from shared.db.engine import is_outage, is_repeatable, sqlstate

DATA_FAULTS: Final = (StatementError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError)
_CLASSES: Final = ("22", "23", "54")  # data exception, integrity violation, program limit exceeded


def is_data_fault(error: Exception) -> bool:
    """Tell whether a smaller set may go through where this one failed.

    False for what no data explains: SQL is away, a table is missing, a right is denied.
    """
    if not isinstance(error, DBAPIError):
        return isinstance(error, DATA_FAULTS)
    if is_outage(error) or is_repeatable(error):
        return False
    return (sqlstate(error) or "").startswith(_CLASSES) or isinstance(error, DataError | IntegrityError)
