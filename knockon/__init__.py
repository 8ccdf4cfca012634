"""The face of Knockon: the `knockon` command and the publishing client that other services import.

The one name that stands here is the client's, so that `from knockon import Publisher` is all that a service
writes. It is loaded when it is asked for: the command begins with this package too, and must be able to end
quietly before it has loaded anything.
"""

from importlib import import_module

TYPE_CHECKING = False  # a checker takes it for true, and loading `typing` would take longer than all of this
if TYPE_CHECKING:
    from knockon.client import Publisher as Publisher


def __getattr__(name: str) -> object:
    if name != "Publisher":
        raise AttributeError(f"module 'knockon' has no attribute {name!r}")
    return import_module("knockon.client").Publisher
