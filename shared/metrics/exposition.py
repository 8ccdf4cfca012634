"""The metrics as Prometheus reads them. A look is kept for 5 s, so that many who ask cost as much as one.

What cannot be read is left out, and `knockon_up` says so.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from shared.logs import get_logger
from shared.metrics.redis_reading import read_redis
from shared.metrics.samples import METRICS, Distribution, Kind, Reading, Sample
from shared.metrics.sql_reading import read_sql
from shared.redis_port import REDIS_ERRORS
from shared.services.backends import Backends

KEPT_S: Final = 5.0
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

log: Final = get_logger("metrics")


class Metrics(Collector):
    """Looks at one deployment, at most once in 5 s, whatever thread asks."""

    def __init__(self, backends: Backends) -> None:
        """Look at nothing yet."""
        self._backends = backends
        self._looking = threading.Lock()
        self._looked_s = float("-inf")
        self._readings: tuple[Reading, ...] = ()
        self.registry: Final = CollectorRegistry()
        self.registry.register(self)

    def text(self) -> bytes:
        """Give all metrics in the text form of Prometheus. Nothing is raised for a server that is away."""
        return generate_latest(self.registry)

    def describe(self) -> Iterable[Family]:
        """Name the metrics without a look at the servers."""
        return _families(())

    def collect(self) -> Iterable[Family]:
        """Give all metrics with what the last look found, which is at most 5 s old."""
        with self._looking:
            now_s = self._backends.clock.monotonic()
            if now_s - self._looked_s >= KEPT_S:
                self._readings = self._look()
                self._looked_s = self._backends.clock.monotonic()
            return _families(self._readings)

    def _look(self) -> tuple[Reading, ...]:
        backends = self._backends
        about = Reading((Sample("knockon_build_info", 1, (version("knockon"),)),))
        return (
            about,
            _read("redis", lambda: read_redis(backends.redis, backends.keys, backends.clock.now())),
            _read("sql", lambda: read_sql(backends.database, backends.clock.now())),
        )


def _read(part: str, read: Callable[[], Reading]) -> Reading:
    """Read one server, and add whether it could be read."""
    try:
        found = read()
    except (SQLAlchemyError, *REDIS_ERRORS) as error:
        log.warning("metrics_not_read", part=part, error=type(error).__name__)
        return Reading((Sample("knockon_up", 0, (part,)),))
    return Reading((Sample("knockon_up", 1, (part,)), *found.samples), found.distributions)


def _families(readings: Iterable[Reading]) -> list[Family]:
    """Sort what was read into its metrics; those of which nothing is known are there, and empty."""
    samples: dict[str, list[Sample]] = {}
    distributions: dict[str, list[Distribution]] = {}
    for reading in readings:
        for sample in reading.samples:
            samples.setdefault(sample.metric, []).append(sample)
        for each in reading.distributions:
            distributions.setdefault(each.metric, []).append(each)
    return list(_filled(samples, distributions))


def _filled(
    samples: dict[str, list[Sample]], distributions: dict[str, list[Distribution]]
) -> Iterator[Family]:
    for name, metric in METRICS.items():
        match metric.kind:
            case Kind.HISTOGRAM:
                histogram = HistogramMetricFamily(name, metric.help, labels=metric.labels)
                for each in distributions.get(name, ()):
                    histogram.add_metric(each.labels, list(each.buckets), each.sum)
                yield histogram
            case Kind.COUNTER:
                counter = CounterMetricFamily(name, metric.help, labels=metric.labels)
                for sample in samples.get(name, ()):
                    counter.add_metric(sample.labels, sample.value)
                yield counter
            case Kind.GAUGE:
                gauge = GaugeMetricFamily(name, metric.help, labels=metric.labels)
                for sample in samples.get(name, ()):
                    gauge.add_metric(sample.labels, sample.value)
                yield gauge
