"""Who works on a study: a trial is its owner's while that one lives, and what the dead left half made is removed."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from factory import make_cell

from runner.owner import HEARTBEAT_TIMEOUT_S, Owner
from runner.study import Study
from runner.trial import Trial


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study, and the folder of those who own something in it."""
    found = Study.ask(tmp_path / "study", {"rounds": 3}, [make_cell()])
    found.owners_folder.mkdir()
    return found


@pytest.fixture
def dead() -> Owner:
    """A process that has ended."""
    return replace(Owner.here(), pid=os.getpid(), started=0.0)


def test_a_trial_is_its_owners_only_while_that_one_lives(study: Study, dead: Owner) -> None:
    living = Owner.here()
    for owner in (living, dead):
        owner.write(study.owner_file(owner.name))
    trials = [Trial.of(make_cell(), number, 0, "cpu") for number in range(2)]
    folders = [study.claim(trial, owner.name) for trial, owner in zip(trials, (living, dead), strict=True)]
    assert [study.owner_of(folder) for folder in folders if folder] == [living, None]
    assert study.owners() == [living]


def test_what_the_dead_left_half_made_is_removed_and_what_the_living_make_is_not(study: Study, dead: Owner) -> None:
    living, cell = Owner.here(), study.trial_folder(make_cell().id, 0).parent
    for owner in (living, dead):
        owner.write(study.owner_file(owner.name))
        (cell / f".trial-000.{owner.name}.abc").mkdir()
    study.remove_leftovers()
    assert [path.name for path in cell.glob(".trial*")] == [f".trial-000.{living.name}.abc"]
    assert study.owners() == [living]
    assert not study.owner_file(dead.name).exists()


def test_a_process_elsewhere_is_dead_when_it_has_been_silent_by_the_file_systems_clock(study: Study) -> None:
    elsewhere = replace(Owner.here(), machine="another")
    file = study.owner_file(elsewhere.name)
    elsewhere.write(file)
    assert study.owners() == [elsewhere]
    os.utime(file, (time.time() - HEARTBEAT_TIMEOUT_S - 1,) * 2)
    assert study.owners() == []


def test_a_copy_of_a_study_at_work_does_not_take_the_originals_process_for_its_own(
    study: Study, tmp_path: Path
) -> None:
    owner = Owner.here(study.folder)
    owner.write(study.owner_file(owner.name))
    copy = Study(Path(shutil.copytree(study.folder, tmp_path / "copy")))
    assert study.owners() == [owner]
    assert copy.owners() == []


def test_a_heartbeat_from_the_future_is_none(study: Study) -> None:
    elsewhere = replace(Owner.here(), machine="another")
    file = study.owner_file(elsewhere.name)
    elsewhere.write(file)
    os.utime(file, (time.time() + 10 * HEARTBEAT_TIMEOUT_S,) * 2)
    assert study.owners() == []


@pytest.mark.parametrize("content", ["garbage", "[" * 100_000, '{"schema": 2}', '{"schema": 1, "pid": 7}'])
def test_a_damaged_owner_that_no_claim_names_matters_to_nobody(content: str, study: Study) -> None:
    study.owner_file("damaged").write_text(content)
    assert study.owners() == []
    study.remove_leftovers()
    assert study.owner_file("damaged").exists()
