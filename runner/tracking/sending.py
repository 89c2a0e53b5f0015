"""Sending figures, settings, texts and data sets in the portions that every store takes."""

from collections.abc import Iterable
from typing import Any

from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from runner.jsonfile import canonical
from runner.record import Record
from runner.tracking import names

Points = dict[tuple[str, int], float]
# A batch may hold 1,000 entries in all, 100 of them params, and a million bytes, into which a character can go as six.
METRICS_A_BATCH, PARAMS_A_BATCH, CHARACTERS_A_BATCH = 900, 100, 140_000
SOURCE_LIMIT = 60_000


def at(moment: int, points: Points) -> list[Metric]:
    """Figures of one point in time. The same points at the same moment again are no new points."""
    return [Metric(names.clean(name), value, moment, step) for (name, step), value in points.items()]


def send(client: MlflowClient, run: str, metrics: list[Metric], settings: dict[str, str]) -> None:
    """Send metrics and params in batches."""
    for params in _batches(settings) or [[]]:
        client.log_batch(run, metrics[:METRICS_A_BATCH], params)
        metrics = metrics[METRICS_A_BATCH:]
    while metrics:
        client.log_batch(run, metrics[:METRICS_A_BATCH])
        metrics = metrics[METRICS_A_BATCH:]


def _batches(settings: dict[str, str]) -> list[list[Param]]:
    batches: list[list[Param]] = []
    characters = 0
    for key, value in settings.items():
        characters += len(key) + len(value)
        if not batches or len(batches[-1]) == PARAMS_A_BATCH or characters > CHARACTERS_A_BATCH:
            batches.append([])
            characters = len(key) + len(value)
        batches[-1].append(Param(key, value))
    return batches


def set_tags(client: MlflowClient, run: str, tags: dict[str, str]) -> None:
    """Set tags, replacing those of the same name."""
    client.log_batch(run, tags=[RunTag(key, value) for key, value in names.tags(tags).items()])


def log_datasets(client: MlflowClient, run: str, data: list[DatasetInput]) -> None:
    """List the data on a run. Twice is once.

    MLflow looks which data sets it knows, then adds the others: if another study adds one of them in between, the
    database refuses all. Each time that happens one more is known.
    """
    if not data:
        return
    for unknown in reversed(range(len(data) + 1)):
        try:
            client.log_inputs(run, datasets=data)
            return
        except MlflowException as error:
            if error.error_code != "BAD_REQUEST" or not unknown:
                raise


def datasets(records: Iterable[Record], dataset: dict[str, Any], use: str) -> list[DatasetInput]:
    """The data that trials saw, each once: by the digest of every step's inputs and targets, so nothing is loaded."""
    name = names.line(str(dataset.get("_target_") or dataset["name"]), names.NAME_LIMIT)
    source = names.cut(canonical(dataset), SOURCE_LIMIT)
    digests = dict.fromkeys(record.digests.data for record in records if record.digests)
    tag = InputTag("mlflow.data.context", use)
    return [DatasetInput(Dataset(name, digest, "local", source), [tag]) for digest in digests]
