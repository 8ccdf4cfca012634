"""SEND_EMAIL: one mail through the operator's server."""

from executors.contract import ActionResult, RunContext, Warned
from executors.letters import Letter, compose, domain_of
from shared.model.actions import SendEmail


def send_email(config: SendEmail, run: RunContext) -> ActionResult:
    """Send the mail; a repeat has the same Message-ID, by which mailboxes know it.

    Recipients that the server did not take, while it took others, are warned of and not tried again.

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
    if not delivered.refused:
        return ActionResult(output)
    warnings = tuple(_warned(address, said) for address, said in delivered.refused.items())
    return ActionResult(output | {"refused": dict(delivered.refused)}, warnings=warnings)


def _warned(address: str, said: str) -> Warned:
    what = "put off" if said.startswith("4") else "refused"
    return Warned(
        f"the mail server {what} a recipient; it is not tried again", {"recipient": address, "said": said}
    )


def _listed(addresses: str | list[str] | None) -> tuple[str, ...]:
    if addresses is None:
        return ()
    return (addresses,) if isinstance(addresses, str) else tuple(addresses)
