"""The states of runs: what has been done of what was asked, and whether anybody still works on it."""

from datetime import datetime

from mlflow.tracking import MlflowClient

from runner.record import Record

RUNNING, FINISHED, FAILED, KILLED = "RUNNING", "FINISHED", "FAILED", "KILLED"


def trial_state(record: Record) -> str:
    """FINISHED only for a training that was complete with finite results, KILLED for an interrupted one."""
    return {"finished": FINISHED, "interrupted": KILLED}.get(record.outcome, FAILED)


def state(records: list[Record], cells: list[str], rounds: int, working: bool) -> str:
    """The state of a run above trials.

    FINISHED only if every trial asked for is; else RUNNING while anybody works on the study, then KILLED if a trial
    was interrupted or is missing, else FAILED. A study whose settings cannot work is FAILED: nobody broke it off.
    """
    done = {(record.cell, record.number): trial_state(record) for record in records}
    below = {done.get((cell, number), KILLED) for cell in cells for number in range(rounds)}
    if below <= {FINISHED}:
        return FINISHED
    refused = bool(records) and all(record.refused for record in records)
    return RUNNING if working else KILLED if KILLED in below and not refused else FAILED


def set_state(client: MlflowClient, run: str, status: str, records: list[Record]) -> None:
    """Let a run go on, or end it with the last of its records, so that ending it again changes nothing."""
    if status == RUNNING:
        client.update_run(run, RUNNING)
        return
    last = max((milliseconds(record.ended) for record in records), default=None)
    client.set_terminated(run, status, last or client.get_run(run).info.end_time)


def milliseconds(moment: str) -> int:
    """A record's point in time as MLflow counts it."""
    return round(datetime.fromisoformat(moment).timestamp() * 1000)
