"""The study, from the command line to the exit code. Everything that concerns a whole study happens here, in order."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, open_dict
from omegaconf.errors import OmegaConfBaseException

from runner import __version__
from runner.asked import looks_of
from runner.budget import Budget
from runner.capture import run_captures
from runner.cards import working
from runner.door import in_turn, plan_said, rounds_of, settle, uri_of
from runner.errors import ConfigError, Refusal, StudyError, unwritable
from runner.expand import Asked, assignment, expand, replication
from runner.forecast import Forecast, forecast, without_share
from runner.interrupt import Terminated, end_descendants, reason_of, terminable
from runner.mirror import Mirror
from runner.presence import leave, present
from runner.progress import Progress, others
from runner.record import Record
from runner.report import write_report
from runner.report.terminal import show
from runner.rounds import Attempt, Place, attempt_of, close_all, launch, rounds_to_do, set_aside_all, to_redo
from runner.settings import Settings
from runner.study import Study

FAILED, REFUSED, INTERRUPTED = 1, 2, 130


def fix_folders(config: DictConfig) -> None:
    """Make the study's folder, and Hydra's within it, absolute and the same for every job of this invocation."""
    folder = Path(str(config.study)).absolute()
    start = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{os.getpid()}"
    with open_dict(config):
        config.study = str(folder)
        config.hydra.sweep.dir = str(Study(folder).hydra_folder(start))


def sweep(arguments: list[str], config: DictConfig, loader: ConfigLoader, launcher: Launcher) -> None:
    """Do a study. Ends the process with a code other than 0 if anything failed or was refused."""
    try:
        with terminable():
            code = _sweep(arguments, config, loader, launcher)
    except (ConfigError, Refusal, StudyError, HydraException, OmegaConfBaseException) as error:
        cause = f"\n{error.__cause__}" if isinstance(error, HydraException) and error.__cause__ else ""
        print(f"error: {error}{cause}", file=sys.stderr)
        code = REFUSED
    except OSError as error:
        print(f"error: {unwritable(Path(str(config.study)), error)}", file=sys.stderr)
        code = FAILED
    except KeyboardInterrupt as error:  # before the first trial, or a second time
        code = _interrupted(error)
    if code:
        sys.exit(code)


def _interrupted(error: KeyboardInterrupt) -> int:
    return 128 + error.signal if isinstance(error, Terminated) else INTERRUPTED


def _sweep(arguments: list[str], config: DictConfig, loader: ConfigLoader, launcher: Launcher) -> int:
    asked = expand(arguments, config, loader)
    recipe = replication(arguments, asked, config, loader)
    cells, cards = settle(asked, config)
    settings = cells[0].settings
    given = any(one.settings.trials for one in asked)  # else a study that is continued has its own number
    study = Study(Path(str(config.study)))
    before = study.asked() if study.asks([one.cell for one in cells]) else {}
    ahead = forecast(study, before, cells, given, len(cards)) if in_turn(config) else Forecast()
    plan = {**asdict(settings.plan), **before.get("plan", {}), **plan_said(cells[0])}
    rounds = 1 if settings.budget else rounds_of(cells)
    Study.ask(study.folder, _asked(rounds, plan) | recipe, [one.cell for one in cells], given and not settings.budget)
    mirror = Mirror(uri_of(settings), study, settings.tracking.experiment)
    present(study)
    broken: BaseException | None = None
    try:
        study.remove_leftovers()
        mirror.check()
        redo = to_redo(study, settings.retry)
        progress = Progress(study, _there(study, redo), ahead.rounds, ahead.timed)
        looked = ahead.budget.looked if ahead.budget else looks_of(before)
        for line in (without_share(looked, progress.rounds), ahead.line):
            if line:
                progress.say(line)
        try:
            with progress.shown():
                if cards:
                    on_cards(cards, study, cells, redo, progress)
                else:
                    in_rounds(study, cells, redo, launcher, config, progress, mirror, ahead.budget)
        except (KeyboardInterrupt, Refusal, StudyError, OSError) as error:
            broken = unwritable(study.folder, error) if isinstance(error, OSError) else error
            end_descendants()
        elsewhere = _launcher(config) == "SlurmLauncher"  # where this process has no device of the trials' kind
        capture = not (broken or elsewhere) and settings.probe.name == "ops"
        return _closed(study, progress, mirror, broken, settings if capture else None)
    finally:
        leave(study)


def in_rounds(
    study: Study,
    cells: list[Asked],
    redo: set[Attempt],
    launcher: Launcher,
    config: DictConfig,
    progress: Progress,
    mirror: Mirror,
    budget: Budget | None,
) -> None:
    """Do all open trials from this process, through Hydra's launcher. Raises Refusal for settings that cannot work.

    Hydra's basic launcher works in this process, one trial after another, and gets them singly, so that each is shown
    when it is done. A cluster's gets all rounds at once, or each would wait in the queue anew; others get a round.
    """
    kind, started = _launcher(config), 0
    with closing(rounds_to_do(study, cells, present(study), redo, kind == "SlurmLauncher", budget)) as rounds:
        for places in rounds:
            size = 1 if kind == "BasicLauncher" else len(places)
            for batch in (places[first : first + size] for first in range(0, len(places), size)):
                with progress.watching([place.key for place in batch]), closing_on_interrupt(study, batch):
                    launch(study, batch, launcher, str(config.hydra.sweep.dir), started)
                started += len(batch)
                mirror.show(_records(study, batch))
            if not progress.trained:
                _refuse(study)
            if budget:
                budget.round_s = len(cells) * progress.trial_s or budget.round_s
    if budget:
        fitted = study.asked()["rounds"]
        progress.say(f"{fitted} round{'' if fitted == 1 else 's'} fitted into budget={budget.given}")


def _launcher(config: DictConfig) -> str:
    return str(config.hydra.launcher._target_).rpartition(".")[2]


@contextmanager
def closing_on_interrupt(study: Study, places: list[Place]) -> Iterator[None]:
    """When these trials are broken off, end what works on them here, and give those without a record one."""
    try:
        yield
    except BaseException as error:  # whatever ends the launch early: no process may go on; it is raised again
        end_descendants()
        own = (None, present(study))  # a cluster's jobs may go on elsewhere
        close_all(
            study, [one for one in places if study.owner_of(study.trial_folder(*one.key)) in own], reason_of(error)
        )
        raise


def on_cards(cards: list[str], study: Study, cells: list[Asked], redo: set[Attempt], progress: Progress) -> None:
    """Do all open trials on several cards, an invocation of this study on each, and watch."""
    logs = study.hydra_folder(f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{os.getpid()}_cards")
    commands = {card: _on_card(card, study) for card in cards}
    keys = set_aside_all(study, cells, present(study), redo)
    if not keys:
        return
    with working(commands, logs) as processes, progress.watching(keys):
        codes = [process.wait() for process in processes]
    for card, code in zip(cards, codes, strict=True):
        if code not in (0, FAILED):
            progress.say(f"{card}: ended with {code}; see {logs}")
    if not progress.trained:
        _refuse(study)


def _on_card(card: str, study: Study) -> list[str]:
    """The words of the command line for one card; what MLflow is to show, this process shows.

    What is to be done again was set aside: a card that begins later must not take another's failure for an old one.
    """
    replaced = {"device", "study", "tracking", "trials", "retry"}
    words = [word for word in sys.argv[1:] if word.lstrip("+").partition("=")[0] not in replaced]
    rounds = study.asked()["rounds"]
    return [
        *words,
        f"device={card}",
        assignment("study", str(study.folder)),
        "tracking=off",
        f"trials={rounds}",
        "retry=none",
    ]


def _there(study: Study, redo: set[Attempt]) -> int:
    return sum(attempt_of(record) not in redo for record in study.records())


def _records(study: Study, places: list[Place]) -> list[Record]:
    return [record for record in (study.record(*place.key) for place in places) if record]


def _refuse(study: Study) -> None:
    """End a study in whose first round no cell could do a first step: it will not in the next one either."""
    records = study.records()
    if records and all(record.refused for record in records):
        folder = study.trial_folder(records[0].cell, records[0].number)
        why = "No cell could do its first step, so the study ends"
        raise Refusal(f"{records[0].reason}\n{why}; the log is in {folder}")


def _closed(
    study: Study, progress: Progress, mirror: Mirror, broken: BaseException | None, capture: Settings | None
) -> int:
    """Report, show and say how it went. Returns the exit code, or raises what the study was refused for.

    With `capture`, the settings, what a probe found is looked into in further trainings.
    """
    import runner.analysis.summary  # noqa: F401 - takes its time, for which nobody should wait at the lock

    summary = _reported(study)
    if capture:
        summary, broken = _captured(study, capture, summary, progress)
    if summary["trials"]["there"]:  # else MLflow has not heard of the study, and need not
        mirror.finish(summary, lambda: bool(others(study)))
    if isinstance(broken, Refusal):
        raise broken
    show(summary, study.folder)
    good = progress.close(summary, None if mirror.failed else mirror.shown)
    if isinstance(broken, KeyboardInterrupt):
        return _interrupted(broken)
    if broken:
        print(f"error: {broken}", file=sys.stderr)
    return 0 if good and not broken else FAILED


def _captured(
    study: Study, settings: Settings, summary: dict[str, Any], progress: Progress
) -> tuple[dict[str, Any], KeyboardInterrupt | None]:
    """Capture what the summary found. The summary with what captures show, and what broke them off."""
    try:
        made = run_captures(study, summary, progress.say, settings.timeout)
    except KeyboardInterrupt as error:  # all trials are done: what there is is reported all the same
        end_descendants()
        return _reported(study), error
    return _reported(study) if made else summary, None


def _reported(study: Study) -> dict[str, Any]:
    with study.lock("report"):  # the last report is of the latest records, also where several invocations end at once
        return write_report(study)


def _asked(rounds: int, plan: dict[str, Any]) -> dict[str, Any]:
    return {
        "rounds": rounds,
        "plan": plan,
        "version": __version__,
        "command": ["python", "-m", "runner", *sys.argv[1:]],
        "folder": os.getcwd(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
