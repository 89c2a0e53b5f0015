"""The rounds of a study: which trials are still to be done, by whom, in which order and with which overrides."""

import os
import random
import secrets
import sys
from collections import Counter
from collections.abc import Container, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from omegaconf.errors import OmegaConfBaseException

from runner.budget import Budget
from runner.claim import Claim, claim_of
from runner.errors import ConfigError, StudyError
from runner.expand import Asked, assignment
from runner.layout import record_file, trial_file
from runner.owner import Owner
from runner.record import Plain, Record
from runner.study import Study
from runner.trial import Trial

KILLED = "its process was killed, or its machine was switched off"


@dataclass(frozen=True)
class Place:
    """A trial's place in the study: cell, round, and position within the round."""

    asked: Asked
    number: int
    position: int

    @property
    def key(self) -> "Key":
        """The cell's id and the round's number."""
        return self.asked.cell.id, self.number


def in_order(cells: list[Asked], study: str, number: int) -> list[Asked]:
    """The cells in the order of one round: shuffled, because a fixed order makes a cell's place part of its result.

    Seeded by the study's id and the round, so that the same study has the same order again.
    """
    shuffled = list(cells)
    random.Random(f"{study}/{number}".encode(errors="surrogateescape")).shuffle(shuffled)  # a folder may be named so
    return shuffled


Key = tuple[str, int]
Attempt = tuple[str, int, Plain, str]
REDONE = {"none": ("interrupted",), "failed": ("interrupted", "failed", "timed_out")}


def to_redo(study: Study, retry: str) -> set[Attempt]:
    """The attempts which a continued study does again: those broken off, and with retry=failed those that failed.

    Those whose series is damaged as well. Only what was so when this invocation began: what fails now is not tried for
    ever.
    """
    outcomes = REDONE[retry]
    return {attempt_of(one) for one in study.records() if one.outcome in outcomes or _damaged_series(study, one)}


def left_to_do(records: list[Record], cells: list[Asked], rounds: int, retry: str) -> int:
    """How many trials of so many rounds are still to be done, as far as records tell."""
    done = {(one.cell, one.number) for one in records if one.outcome not in REDONE[retry]}
    return sum((one.cell.id, number) not in done for one in cells for number in range(rounds))


def _damaged_series(study: Study, record: Record) -> bool:
    try:
        study.series(record)
    except StudyError:
        return True
    return False


def attempt_of(record: Record) -> Attempt:
    """Which attempt at which trial left this record, and how it went: a killed one may come to its end after all."""
    return record.cell, record.number, record.process.get("claim"), record.outcome


def open_places(study: Study, cells: list[Asked], number: int, redo: set[Attempt], own: Container[Key]) -> list[Place]:
    """The trials of a round that are to be done: those that nobody has, and those that are done again.

    Those too that another invocation broke off meanwhile; `own` are the trials that this one has begun itself.
    """
    order = in_order(cells, study.asked()["id"], number)
    places = [Place(asked, number, position) for position, asked in enumerate(order)]
    return [place for place in places if _is_open(study, *place.key, redo, own)]


def _is_open(study: Study, cell: str, number: int, redo: set[Attempt], own: Container[Key]) -> bool:
    folder = study.trial_folder(cell, number)
    if not os.path.lexists(folder):
        return True
    try:
        record = study.record(cell, number)
    except StudyError:  # damaged
        record = None
    if record is None:
        try:
            return not study.owner_of(folder)
        except StudyError:  # a claim that nobody can read may be a living process's: it is named in the report
            return False
    return attempt_of(record) in redo or (record.outcome == "interrupted" and (cell, number) not in own)


def rounds_to_do(
    study: Study, cells: list[Asked], owner: Owner, redo: set[Attempt], wide: bool, budget: Budget | None = None
) -> Generator[list[Place], None, None]:
    """Take one round after another that nobody else has, and yield its open trials, until nothing can be taken.

    A round stays with its owner, so that trials that are compared have met the same device. It goes over the rounds
    again as long as there was something to do: another process may have died meanwhile. `wide`: all rounds at once.
    A trial is yielded twice at most: what a launcher lost may come back, what vanishes each time may not for ever.
    With a budget a round after the first one begins only if it fits, and the study gets longer by one at a time.
    """
    yielded: Counter[Key] = Counter()
    worked = True
    while worked:
        worked = False
        numbers = list(range(study.asked()["rounds"]))
        for group in [numbers] if wide else [[number] for number in numbers]:
            if budget and yielded and not budget.fits():
                return
            with _taken(study, cells, group, owner, redo, yielded) as found:
                places = [place for place in found if yielded[place.key] < 2]
                if places:
                    worked = True
                    yielded.update(place.key for place in places)
                    yield places
        worked = worked or bool(budget and budget.lengthen(study))


def set_aside_all(study: Study, cells: list[Asked], owner: Owner, redo: set[Attempt]) -> list[Key]:
    """Set aside all that is done again in rounds that nobody has; return the keys of all trials that are to be done."""
    with _taken(study, cells, list(range(study.asked()["rounds"])), owner, redo, ()) as places:
        return [place.key for place in places]


@contextmanager
def _taken(
    study: Study, cells: list[Asked], numbers: list[int], owner: Owner, redo: set[Attempt], own: Container[Key]
) -> Iterator[list[Place]]:
    """Own those of these rounds that no living process has; gives their open trials, with former attempts set aside."""
    wanted = [number for number in numbers if open_places(study, cells, number, redo, own)]
    with _held(study, wanted, owner) as mine:
        places = [place for number in mine for place in open_places(study, cells, number, redo, own)]
        for place in places:
            close_broken_off(study, place, KILLED)
            study.set_aside(*place.key)
        yield places


@contextmanager
def _held(study: Study, numbers: list[int], owner: Owner) -> Iterator[list[int]]:
    """Own those of these rounds that no living process has, for a while."""
    claims = {number: Claim(secrets.token_hex(8), owner.name) for number in numbers}
    mine = [number for number, claim in claims.items() if _take(study, number, claim)]
    try:
        yield mine
    finally:
        for number in mine:
            claims[number].release(study.round_folder(number))


def _take(study: Study, number: int, claim: Claim) -> bool:
    folder = study.round_folder(number)
    dead = claim_of(folder)
    if dead and not study.owner_of(folder):
        dead.set_aside(folder)
    elif not dead and os.path.lexists(folder):  # made by hand, or its claim was removed
        folder.rename(folder.with_name(f"{folder.name}.unowned-{claim.name}"))
    return claim.take(folder)


def launch(study: Study, places: list[Place], launcher: Launcher, hydra_folder: str, started: int) -> None:
    """Have these trials done. A launcher that breaks costs the trials that it had begun, not the study.

    Raises what a job raised, and StudyError if the launcher could not begin any.
    """
    overrides = [_overrides(place, study, hydra_folder) for place in places]
    try:
        returned = launcher.launch(overrides, initial_job_idx=started)
    except (ConfigError, StudyError, HydraException, OmegaConfBaseException, OSError):
        raise
    except Exception as error:  # a pool whose worker was killed, a cluster that lost a job: each has its own type
        if isinstance(error.__context__, KeyboardInterrupt):  # joblib, interrupted while it starts, trips over itself
            raise error.__context__ from None
        message = f"the launcher broke off ({type(error).__name__}: {error})".splitlines()[0]
        if not any(study.trial_folder(*place.key).exists() for place in places):
            raise StudyError(f"{message} and no trial began; look into {hydra_folder}") from error
        print(message, file=sys.stderr)
        close_all(study, [place for place in places if not study.owner_of(study.trial_folder(*place.key))], KILLED)
    else:
        close_all(study, places, KILLED)  # the launcher says that all have ended, on whatever machine they were
        for one in returned:
            _ = one.return_value  # raises what was raised there


def close_all(study: Study, places: list[Place], reason: str) -> None:
    """Give those of these trials that have begun and left no record one: whoever did them is dead."""
    for place in places:
        close_broken_off(study, place, reason)


def close_broken_off(study: Study, place: Place, reason: str) -> None:
    """Give a trial whose process was killed the record that it could not write itself."""
    folder = study.trial_folder(*place.key)
    if record_file(folder).is_file() or not trial_file(folder).is_file():
        return
    with suppress(StudyError):  # a damaged trial.json: then there is nothing to say
        trial = Trial.read(trial_file(folder))
        started = datetime.fromtimestamp(trial_file(folder).stat().st_mtime, UTC).isoformat(timespec="milliseconds")
        Record.of(trial, "interrupted", reason, started).write(record_file(folder))


def _overrides(place: Place, study: Study, hydra_folder: str) -> list[str]:
    return [
        *place.asked.overrides,
        assignment("study", str(study.folder)),
        assignment("hydra.sweep.dir", hydra_folder),
        # Nobody's names: what a user gives could lead out of the study.
        "hydra.sweep.subdir=${hydra.job.num}",
        "hydra.output_subdir=config",
        assignment("trial.number", place.number),
        assignment("trial.position", place.position),
    ]
