"""The face of Knockon: the `knockon` command and the publishing client that other services import.

The one name that stands here is the client's, so that `from knockon import Publisher` is all that a service
writes.
"""

from knockon.client import Publisher as Publisher
