"""Every metric by its name, with its kind, labels and meaning, and the samples that a look gives of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Kind(StrEnum):
    """What Prometheus takes a metric for."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """What is told of a metric beside its samples."""

    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One number of a metric; `labels` are the values, in the order of the metric's labels."""

    metric: str
    value: float
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Distribution:
    """One histogram: how many there were in each bucket and those below it, and the sum of all."""

    metric: str
    buckets: Sequence[tuple[str, float]]
    sum: float
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What one look gave."""

    samples: tuple[Sample, ...] = ()
    distributions: tuple[Distribution, ...] = ()


METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    {
        "knockon_up": Metric(Kind.GAUGE, "1 if the server could be read, else 0.", ("part",)),
        "knockon_build_info": Metric(Kind.GAUGE, "Always 1; the label is what is asked for.", ("version",)),
        "knockon_processes": Metric(
            Kind.GAUGE, "Processes that gave a sign of life lately; of watchdogs the elected one.", ("part",)
        ),
        "knockon_clock_skew_seconds": Metric(
            Kind.GAUGE, "By how much our clock is ahead of the server's.", ("part",)
        ),
        "knockon_stream_entries": Metric(Kind.GAUGE, "Entries of the event stream, read ones too."),
        "knockon_stream_lag_entries": Metric(
            Kind.GAUGE, "Entries that no matcher has read; absent while Redis cannot tell."
        ),
        "knockon_stream_lag_seconds": Metric(
            Kind.GAUGE, "Age of the oldest entry that no matcher has finished; 0 if there is none."
        ),
        "knockon_stream_pending_entries": Metric(
            Kind.GAUGE, "Entries that matchers have read and not finished."
        ),
        "knockon_queue_handles": Metric(Kind.GAUGE, "Handles that wait in a queue.", ("queue",)),
        "knockon_queue_oldest_seconds": Metric(
            Kind.GAUGE, "Age of a queue's first handle; 0 if it is empty.", ("queue",)
        ),
        "knockon_queue_suspended": Metric(Kind.GAUGE, "1 while rq suspend is in force, else 0."),
        "knockon_retries_waiting": Metric(Kind.GAUGE, "Runs that wait for their next attempt."),
        "knockon_due_rows": Metric(Kind.GAUGE, "What is due by the clock and was not taken yet.", ("kind",)),
        "knockon_pending_executions": Metric(Kind.GAUGE, "Pending executions that wait, at most 10,000."),
        "knockon_pending_executions_late_seconds": Metric(
            Kind.GAUGE, "For how long the first pending execution that waits is due; 0 if none is."
        ),
        "knockon_idle_steps_waiting": Metric(
            Kind.GAUGE, "Steps of idle sequences that wait, at most 10,000."
        ),
        "knockon_idle_steps_late_seconds": Metric(
            Kind.GAUGE, "For how long the first step that waits is due; 0 if none is."
        ),
        "knockon_runs_running": Metric(Kind.GAUGE, "Runs under a claim, at most 10,000."),
        "knockon_runs_pending": Metric(
            Kind.GAUGE, "Runs that wait, for a worker or their next attempt, at most 10,000."
        ),
        "knockon_runs_pending_oldest_seconds": Metric(
            Kind.GAUGE, "For how long a run that could start has waited for a worker; 0 if there is none."
        ),
        "knockon_outbox_unsent": Metric(
            Kind.GAUGE, "Emitted events that are not on the stream yet, at most 10,000."
        ),
        "knockon_outbox_oldest_seconds": Metric(Kind.GAUGE, "Age of the oldest of them; 0 if there is none."),
        "knockon_alerts_waiting": Metric(
            Kind.GAUGE, "Dead letters to be told and messages to be sent, at most 20,000."
        ),
        "knockon_alerts_oldest_seconds": Metric(
            Kind.GAUGE, "For how long the first of them is due; 0 if there is none."
        ),
        "knockon_redis_memory_bytes": Metric(Kind.GAUGE, "Memory that Redis uses."),
        "knockon_redis_memory_limit_bytes": Metric(Kind.GAUGE, "Its maxmemory; 0 if it has none."),
        "knockon_matched_total": Metric(
            Kind.COUNTER, "Runs that events started, by trigger type.", ("trigger_type",)
        ),
        "knockon_skipped_total": Metric(
            Kind.COUNTER, "Events and automations that did not meet, by reason.", ("reason",)
        ),
        "knockon_delayed_total": Metric(
            Kind.COUNTER, "What became of pending executions, by what was done to them.", ("outcome",)
        ),
        "knockon_delayed_skipped_total": Metric(
            Kind.COUNTER, "Pending executions that did not run, by reason.", ("reason",)
        ),
        "knockon_idle_steps_total": Metric(
            Kind.COUNTER, "What became of steps of idle sequences.", ("result",)
        ),
        "knockon_actions_total": Metric(
            Kind.COUNTER, "Actions that succeeded, and attempts that failed.", ("type", "outcome")
        ),
        "knockon_dead_letters_total": Metric(Kind.COUNTER, "Dead letters of all workspaces."),
        "knockon_entries_taken_total": Metric(Kind.COUNTER, "Entries that matchers have finished."),
        "knockon_entries_buried_total": Metric(Kind.COUNTER, "Entries that went to the dead stream."),
        "knockon_entries_lost_total": Metric(
            Kind.COUNTER, "Entries that were trimmed after they had been handed out."
        ),
        "knockon_stream_gaps_total": Metric(
            Kind.COUNTER, "Gaps found in the stream: entries trimmed before anybody read them."
        ),
        "knockon_event_conflicts_total": Metric(Kind.COUNTER, "Events under an id that another payload had."),
        "knockon_definitions_unreadable_total": Metric(Kind.COUNTER, "Definitions that could not be read."),
        "knockon_schedules_unreadable_total": Metric(Kind.COUNTER, "Schedules that could not be read."),
        "knockon_handles_dropped_total": Metric(Kind.COUNTER, "Queue entries that were none of ours."),
        "knockon_event_to_run_seconds": Metric(
            Kind.HISTOGRAM, "From an event's entry on the stream to its run."
        ),
        "knockon_queue_wait_seconds": Metric(Kind.HISTOGRAM, "How long runs waited in a queue for a worker."),
        "knockon_run_duration_seconds": Metric(
            Kind.HISTOGRAM, "From a run's first claim to its end, waits between attempts too.", ("outcome",)
        ),
        "knockon_sweep_lateness_seconds": Metric(
            Kind.HISTOGRAM, "How long after it was due a schedule or a pending execution was fired."
        ),
    }
)
