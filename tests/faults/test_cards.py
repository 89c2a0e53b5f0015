"""Several cards: rounds stay whole, each trial has its card to itself, and a card that fails holds up no other."""

import re
import signal
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from factory import Plant, make_cell, make_record
from launching import SLOW, TINY, at_work, ended, finals, pids, rounds_by_invocation, set_aside, start, trials
from processes import alive, gone, within
from scipy import stats

from runner.analysis.environment import environments_of
from runner.analysis.looks import Looks
from runner.analysis.ratio import compare
from runner.analysis.sample import Sample
from runner.cell import Cell
from runner.record import Record
from runner.study import Study

SIMULATED = (Path(__file__).resolve().parents[1] / "simulated",)
CARDS = {f"SIMULATED-{index}" for index in range(4)}
ALL = ["cudnn=glob(*)", *SLOW, "device=all", "trials=8", "study=s"]

simulated = partial(start, paths=SIMULATED)


def cards_of_rounds(study: Study) -> dict[int, set[object]]:
    """The cards that each round has met."""
    found: dict[int, set[object]] = {}
    for record in study.records():
        found.setdefault(record.number, set()).add(record.environment["gpu_uuid"])
    return found


def test_all_cards_work_at_once_and_each_round_stays_on_one(tmp_path: Path) -> None:
    code, said = ended(simulated(*ALL, folder=tmp_path))
    assert code == 0 and "Traceback" not in said, said
    study = Study(tmp_path / "s")
    assert len(pids(study)) == len(set(pids(study).values())) == len(trials(study)) == 32
    cards = cards_of_rounds(study)
    assert len(cards) == 8 and all(len(met) == 1 for met in cards.values())
    assert set.union(*cards.values()) == CARDS
    assert len(re.findall(r"^\[\d+/32\] round ", said, re.MULTILINE)) == 32 and "[32/32]" in said
    spans = sorted((record.started, record.ended, record.number) for record in study.records())
    assert any(later[0] < one[1] and later[2] != one[2] for one, later in pairwise(spans))
    assert len(set(finals(study).values())) == 1
    assert len(rounds_by_invocation(study)) == 4
    assert list((study.folder / "owners").iterdir()) == list((study.folder / "rounds").iterdir()) == []


@pytest.mark.slow
def test_failed_trials_are_done_again_once_in_all_not_once_a_card(tmp_path: Path) -> None:
    (tmp_path / "bad").touch()
    model = ["model._target_=planted_share.FailsWhile", f"+model.args.path={tmp_path / 'bad'}"]
    words, study = (
        ["cudnn=default,benchmark", *TINY, *model, "device=all", "trials=2", "study=s"],
        Study(tmp_path / "s"),
    )
    code, said = ended(simulated(*words, folder=tmp_path))
    assert code == 1 and said.count("failed: ") == 2, said
    assert set_aside(study) == []
    code, said = ended(simulated(*words, folder=tmp_path))
    assert code == 1 and said.count("failed: ") == 2 and len(set_aside(study)) == 2, said
    (tmp_path / "bad").unlink()
    code, said = ended(simulated(*words, folder=tmp_path))
    assert code == 0 and said.count("ms a step, first") == 2 and "failed: " not in said, said


def ours(mark: str) -> list[int]:
    """The living processes that carry a variable of this value."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes() and alive(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_ctrl_c_ends_all_cards_with_records(tmp_path: Path) -> None:
    mark = f"{tmp_path}/mark"
    process, study = simulated(*ALL, "+model.args.step_s=1", folder=tmp_path, PLANTED_MARK=mark), Study(tmp_path / "s")
    assert within(600, lambda: len(at_work(study.folder)) == 4)
    assert within(600, lambda: all((path / "log.txt").exists() for path in at_work(study.folder)))
    begun = at_work(study.folder)
    process.send_signal(signal.SIGINT)
    code, said = ended(process)
    assert code == 130 and "Traceback" not in said, said
    assert gone(ours(mark))
    records = study.records()
    assert at_work(study.folder) == []
    assert set(begun) <= {study.trial_folder(one.cell, one.number) for one in records if one.failed}
    assert {one.reason for one in records if one.failed} == {"interrupted from the keyboard"}


@pytest.mark.slow
def test_a_card_that_kills_its_invocation_holds_up_no_other(tmp_path: Path) -> None:
    model = ["model._target_=planted_share.KillsInvoker", "+model.args.card=cuda:1"]
    process = simulated("cudnn=glob(*)", *TINY, *model, "device=all", "trials=8", "study=s", folder=tmp_path)
    code, said = ended(process)
    study = Study(tmp_path / "s")
    assert code == 0 and "cuda:1: ended with -9" in said, said
    assert len(pids(study)) == 32 and len(re.findall(r"^\[\d+/32\] round ", said, re.MULTILINE)) == 32
    assert "SIMULATED-1" not in {record.environment["gpu_uuid"] for record in study.records()}
    assert len(set_aside(study)) == 1


@pytest.mark.slow
def test_settings_that_no_card_can_use_end_the_study_with_the_reason(tmp_path: Path) -> None:
    model = ["model._target_=planted.Fails", "+model.args.how=raise", "+model.args.step=1"]
    code, said = ended(simulated("cudnn=glob(*)", *TINY, *model, "device=all", "trials=8", "study=s", folder=tmp_path))
    assert code == 2 and said.count("error: RuntimeError: planted failure in step 1") == 1, said
    assert len(Study(tmp_path / "s").records()) <= 4 * 4  # not all rounds: one for each card


@pytest.mark.parametrize("words", [["device=all", "hydra/launcher=joblib"], ["device=all,cpu"]])
def test_all_cards_stand_alone_and_need_no_launcher(words: list[str], tmp_path: Path) -> None:
    code, said = ended(simulated("cudnn=default", *SLOW, *words, "study=s", folder=tmp_path))
    assert code == 2 and said.startswith("error: device=") and len(said.splitlines()) == 1, said
    assert list(tmp_path.iterdir()) == []


def spans(path: Path) -> list[tuple[float, float]]:
    """When each trial began and ended its training and evaluation, in order."""
    found: dict[float, float] = {}
    for line in path.read_text().splitlines():  # one for each batch of the evaluation
        began, until = map(float, line.split())
        found[began] = max(until, found.get(began, 0.0))
    return sorted(found.items())


def overlaps(found: list[tuple[float, float]]) -> int:
    """How many trials begin before the one before them has ended."""
    return sum(later[0] < one[1] for one, later in pairwise(found))


@pytest.mark.parametrize("exclusive", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_two_studies_share_a_card_in_turns_or_side_by_side_and_say_so(exclusive: bool, tmp_path: Path) -> None:
    model = ["model._target_=planted_share.Noted", f"+model.args.path={tmp_path / 'spans'}"]
    words = ["cudnn=glob(*)", *TINY, *model, "device=cuda:2", "trials=2", f"exclusive={str(exclusive).lower()}"]
    together = [simulated(*words, f"study={name}", folder=tmp_path) for name in "ab"]
    said = [ended(process) for process in together]
    assert [code for code, _ in said] == [0, 0], said
    waits = [line for _, text in said for line in text.splitlines() if line.startswith("waiting for ")]
    found = spans(tmp_path / "spans")
    assert len(found) == 16
    if exclusive:
        assert overlaps(found) == 0
        holder = r"(?:process (\d+) of \w+ on \S+|another process)"  # the latter before it has written its name
        holders = [
            re.fullmatch(rf"waiting for SIMULATED CARD 2 \(SIMULATED-2\), held by {holder}", line) for line in waits
        ]
        assert all(holders), said
        named = {int(one[1]) for one in holders if one and one[1]}
        assert named and named <= {process.pid for process in together}
    else:
        assert overlaps(found) > 0 and waits == []
    records = [record for name in "ab" for record in Study(tmp_path / name).records()]
    assert {record.process["exclusive"] for record in records} == {exclusive}


def test_a_dead_holder_of_a_card_holds_up_nobody(tmp_path: Path) -> None:
    words = ["cudnn=default", *SLOW, "device=cuda:3", "trials=1"]
    process = simulated(*words, "+model.args.step_s=60", "study=a", folder=tmp_path)
    assert within(600, lambda: [path for path in at_work(tmp_path / "a") if (path / "log.txt").exists()] != [])
    process.kill()
    ended(process)
    code, said = ended(simulated(*words, "study=b", folder=tmp_path))
    assert code == 0, said


EFFECTS = (0.0, 0.05, 0.10, -0.05)


def simulate(seed: int, split: bool) -> list[Record]:
    """Ten rounds of two equal cells on four cards of different speed: each round on the card that is free first.

    With `split` each cell has a card of its own instead, the other's in the first round, as if a round's trials were
    dealt out.
    """
    rng, free, records = np.random.default_rng(seed), np.zeros(4), []
    for number in range(10):
        first = int(np.argmin(free + rng.uniform(0, 1e-6, 4)))
        for place, cell in enumerate(CELLS):
            card = (1 - place if number == 0 else place) if split else first
            free[card] += np.exp(EFFECTS[card] + rng.normal(0, 0.05))
            records.append(on_card(cell, number, card, float(np.exp(EFFECTS[card] + rng.normal(0, 0.002)))))
    return records


CELLS = [make_cell("default"), make_cell("benchmark")]
BASE = {cell.id: make_record(cell, 0, Plant()) for cell in CELLS}


def on_card(cell: Cell, number: int, card: int, step_ms: float) -> Record:
    """A finished trial's record."""
    record = BASE[cell.id]
    assert record.speed is not None
    where = record.environment | {"gpu_uuid": f"SIMULATED-{card}"}
    return replace(record, number=number, environment=where, speed=replace(record.speed, step_ms=step_ms))


def false_alarms(studies: int, split: bool) -> int:
    """In how many studies of equal cells a difference is claimed, with no margin."""
    return sum(verdict(simulate(seed, split)) in ("faster", "slower") for seed in range(studies))


def verdict(records: list[Record]) -> str:
    (environment,) = environments_of(records).values()
    default, benchmark = (sample(cell, records, environment) for cell in CELLS)
    return compare(benchmark, default, comparisons=1, margin=0.0, looks=Looks((20,))).verdict


def sample(cell: Cell, records: list[Record], environment: object) -> Sample:
    own = [record for record in records if record.cell == cell.id]
    return Sample(cell, cell.id, environment, own, CELLS[0].id)  # type: ignore[arg-type]


def test_cards_of_different_speed_raise_no_false_alarms_when_rounds_stay_whole() -> None:
    alarms = false_alarms(2000, split=False)
    assert stats.binomtest(alarms, 2000, 0.05, alternative="greater").pvalue > 0.001, alarms
    assert stats.binomtest(alarms, 2000, 0.05, alternative="less").pvalue > 0.001, alarms  # nor wide for nothing


def test_the_same_cards_would_raise_false_alarms_if_rounds_were_split() -> None:
    alarms = false_alarms(200, split=True)
    assert stats.binomtest(alarms, 200, 0.05, alternative="greater").pvalue < 1e-6, alarms
