"""SEND_EMAIL: one mail through the operator's server."""

from executors.contract import ActionResult, RunContext
from executors.letters import Letter, compose, domain_of
from shared.model.actions import SendEmail


def send_email(config: SendEmail, run: RunContext) -> ActionResult:
    """Send the mail; a repeat has the same Message-ID, by which mailboxes know it.

    Raises what `Mailer.deliver` raises, and FatalError CONFIG_INVALID for what no mail can hold.
    """
    sender = run.mail.sender
    letter = Letter(
        sender=sender,
        to=_listed(config.to),
        cc=_listed(config.cc),
        bcc=_listed(config.bcc),
        reply_to=_listed(config.reply_to),
        subject=config.subject,
        body=config.body,
        html=config.html,
        at=run.now,
        message_id=f"<{run.run_id}.{run.position}@{domain_of(sender)}>",
    )
    delivered = run.mail.deliver(compose(letter), run.deadline)
    output = {"messageId": letter.message_id, "recipients": delivered.taken}
    return ActionResult(output | ({"refused": dict(delivered.refused)} if delivered.refused else {}))


def _listed(addresses: str | list[str] | None) -> tuple[str, ...]:
    if addresses is None:
        return ()
    return (addresses,) if isinstance(addresses, str) else tuple(addresses)
