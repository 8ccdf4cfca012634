"""What the pipeline works with in one process: servers, settings, clock, executors.

Built by whoever starts it.
"""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from executors.ai_service import AiService, ai_service
from executors.contract import Executor
from executors.outbound import Outbound, OutboundPolicy
from executors.registry import all_executors
from executors.smtp import Mailer, open_mailer
from pipeline.settling import Settlers
from shared.db.engine import Database, open_database
from shared.errors import SettingsError
from shared.ids import new_id
from shared.keys import Keys
from shared.queue import HandleQueue
from shared.redis_port import RedisPort, open_redis
from shared.settings import Settings
from shared.time.clock import Clock, SystemClock


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything from outside. `owner` names this process on the rows that it claims.

    `child_module` is what a suspect run's own process executes: with the executors and settlers of this one.
    """

    settings: Settings
    database: Database
    redis: RedisPort
    keys: Keys
    queue: HandleQueue
    clock: Clock
    owner: str
    executors: Mapping[str, Executor]
    http: Outbound
    mail: Mailer
    ai: AiService
    child_module: str = "worker.solo_child"
    settlers: Settlers = field(default_factory=dict)


def open_parts(settings: Settings) -> Parts:
    """Build the parts from the settings; nothing is connected yet.

    Raises SettingsError where REDIS_URL or DATABASE_URL is missing: the embedded defaults are filled in
    above us.
    """
    if settings.redis_url is None or settings.database_url is None:
        raise SettingsError("REDIS_URL, DATABASE_URL: both must be set for this process")
    redis = open_redis(settings.redis_url)
    keys = Keys(settings.prefix, settings.events_stream)
    clock = SystemClock()
    secret = settings.webhook_secret
    policy = OutboundPolicy(settings.webhook_allow_private, secret.get_secret_value() if secret else None)
    return Parts(
        settings=settings,
        database=open_database(settings.database_url),
        redis=redis,
        keys=keys,
        queue=HandleQueue(redis, keys),
        clock=clock,
        owner=f"{socket.gethostname()}-{os.getpid()}-{new_id()[-12:]}",
        executors=all_executors(),
        http=Outbound(policy, clock),
        mail=open_mailer(settings),
        ai=ai_service(settings),
    )
