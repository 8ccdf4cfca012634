"""What tests of alerts share: dead letters by the set, a clock that stands still, and a post office."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from executors.deadline import Deadline
from executors.smtp import open_mailer
from shared.db.automations import AutomationRow, insert_automation
from shared.db.dead_letters import DeadLetter, DeadLetterKind, record_dead_letters
from shared.db.people import Member, insert_member
from shared.ids import new_id
from shared.model.executed import EndedRun
from shared.model.moves import RunStatus
from shared.model.roles import Role
from shared.model.runs import RunError
from shared.model.statuses import AutomationStatus
from shared.services.backends import Backends
from shared.settings import Settings, SmtpTls
from shared.time.clock import ManualClock
from tests.mail_server import Door
from tests.people import NOW, opened_backends
from timers.alert_ways import Mail, Ways, open_ways
from timers.alerting import Teller

NOBODYS_PORT = 1
PASSES = 3
DEAD_HOST = "POST https://dead.example/hook answered 503"
CODE = "WEBHOOK_HTTP_RETRIABLE"


class Office:
    """A mail server on loopback that keeps what it took in; `after` happens before it says so."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.readers: list[str] = []
        self.after: Callable[[], None] | None = None

    async def handle_DATA(  # noqa: N802  # the name that the server calls
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        parsed = message_from_bytes(content, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        self.mails.append(parsed)
        self.readers += envelope.rcpt_tos
        if self.after is not None:
            self.after()
        return "250 OK"

    def to(self, reader: str) -> list[EmailMessage]:
        """Give what one person got."""
        return [mail for mail in self.mails if mail["To"] == reader]


@contextmanager
def opened_office() -> Iterator[tuple[Office, int]]:
    """Open a mail server on a free port."""
    office = Office()
    door = Door(office)
    door.start()
    try:
        yield office, door.port
    finally:
        door.part()


@dataclass
class Post:
    """A way to a mail server that a test can cut; `after` happens once a mail has been taken in."""

    whole: Mail
    cut: Mail
    is_cut: bool = False
    after: Callable[[], None] | None = None

    def send(self, message: EmailMessage, deadline: Deadline) -> None:
        (self.cut if self.is_cut else self.whole).send(message, deadline)
        if self.after is not None:
            self.after()


@dataclass
class Desk:
    """A deployment with people to be told, and the teller of one process."""

    backends: Backends
    settings: Settings
    ways: Ways
    office: Office
    post: Post
    automations: dict[str, str] = field(default_factory=dict)

    @property
    def clock(self) -> ManualClock:
        assert isinstance(self.backends.clock, ManualClock)
        return self.backends.clock

    def teller(self) -> Teller:
        """Make a teller as another process would have it."""
        return Teller(self.settings, self.backends, self.ways)

    def wait(self, minutes: float) -> datetime:
        """Let time pass and have it be told of in a few passes; give what time it is then."""
        self.clock.advance(timedelta(minutes=minutes))
        teller = self.teller()
        for _ in range(PASSES):
            teller.tick()
        return self.clock.now()

    def die(
        self, count: int, message: str = DEAD_HOST, automation: str = "welcome", workspace_id: str = "w1"
    ) -> None:
        """Record dead letters in one set, as the journal does."""
        automation_id = self.automations.get(automation) or self._automation(automation)
        letters = [
            _letter(workspace_id, automation_id, automation, RunError(CODE, message, 1)) for _ in range(count)
        ]
        with self.backends.database.begin() as conn:
            record_dead_letters(conn, letters, now=self.clock.now())

    def _automation(self, name: str) -> str:
        """Store an automation of this name."""
        row = AutomationRow(
            id=new_id(),
            workspace_id="w1",
            key=new_id(),
            name=name,
            status=AutomationStatus.ACTIVE,
            version=1,
            definition={},
            activated_ms=0,
            created_at=NOW,
            updated_at=NOW,
            deleted_at=None,
        )
        with self.backends.database.begin() as conn:
            insert_automation(conn, row)
        return self.automations.setdefault(name, row.id)

    def rows(self, query: str, **values: object) -> Sequence[Any]:
        """Read with a query of the test's own."""
        with self.backends.database.read() as conn:
            return conn.exec_driver_sql(query).all()

    def group(self) -> Any:
        """Give the only group."""
        (row,) = self.rows("SELECT * FROM alert_groups")
        return row


def add_people(backends: Backends, people: Iterable[tuple[str, Role]], workspace_id: str = "w1") -> None:
    """Add members of a workspace."""
    with backends.database.begin() as conn:
        for address, role in people:
            insert_member(conn, Member(new_id(), workspace_id, address, address, role), now=NOW)


def _letter(workspace_id: str, automation_id: str, name: str, error: RunError) -> DeadLetter:
    id_ = new_id()
    run = EndedRun(id_, workspace_id, automation_id, id_, "EVENT", 1, RunStatus.DEAD_LETTER, 1000, error)
    return DeadLetter(run, name, error, 9, DeadLetterKind.EXHAUSTED)


@contextmanager
def opened_desk(database_url: str, redis_url: str, **given: Any) -> Iterator[Desk]:
    """Open a deployment with an owner, an admin and an operator, and a mail server for it."""
    with opened_backends(database_url, redis_url) as backends, opened_office() as (office, port):
        settings = Settings(
            _env_file=None,
            smtp_host="127.0.0.1",
            smtp_port=port,
            smtp_from="Knockon <robot@knockon.test>",
            smtp_tls=SmtpTls.NONE,
            **{"webhook_allow_private": True, **given},
        )
        people = ("olga", Role.OWNER), ("adam", Role.ADMIN), ("otto", Role.OPERATOR)
        add_people(backends, ((f"{name}@example.test", role) for name, role in people))
        ways = open_ways(settings, backends.clock)
        assert ways.mail is not None
        cut = open_mailer(settings.model_copy(update={"smtp_port": NOBODYS_PORT}))
        post = Post(ways.mail, cut)
        yield Desk(backends, settings, replace(ways, mail=post), office, post)
        ways.http.close()
