"""All commands under one name."""

from knockon.cli import apply, automations, dead, doctor, events, keys, processes, publish, runs, setup, tail
from knockon.cli.running import make_app

app = make_app()
processes.add_to(app)
setup.add_to(app)
doctor.add_to(app)
publish.add_to(app)
apply.add_to(app)
tail.add_to(app)
app.add_typer(automations.group, name="automations")
app.add_typer(runs.group, name="runs")
app.add_typer(dead.group, name="dead")
app.add_typer(events.group, name="events")
app.add_typer(keys.group, name="keys")
