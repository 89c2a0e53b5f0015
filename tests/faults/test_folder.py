"""What strangers do to a study's folder: names that lead out of it, folders of theirs in it, and its removal."""

import shutil
from pathlib import Path

from launching import PLAIN, SLOW, at_work, contents, done, ended, finals, start
from processes import within

from runner.study import Study


def test_a_folder_of_others_in_a_rounds_place_is_moved_aside_and_kept(tmp_path: Path) -> None:
    assert done(*PLAIN, "trials=1", "study=s", folder=tmp_path)[0] == 0
    study = Study(tmp_path / "s")
    theirs = study.round_folder(1)
    theirs.mkdir(parents=True)
    (theirs / "notes.txt").write_text("mine")
    code, said = done(*PLAIN, "trials=2", "study=s", folder=tmp_path)
    assert code == 0, said
    assert len(finals(study)) == 2
    (aside,) = theirs.parent.glob(f"{theirs.name}.*")
    assert (aside / "notes.txt").read_text() == "mine"
    assert not theirs.exists()


def test_hydras_own_folders_cannot_be_led_out_of_the_study(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    words = ["hydra.output_subdir=../../../../out", "hydra.sweep.subdir=../../../../out"]
    code, said = done(*PLAIN, *words, "trials=1", "study=s", folder=here)
    assert code == 0, said
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert {path.name for path in here.iterdir()} == {"s"}
    assert any("/config/" in f"/{name}" for name in contents(here / "s" / "hydra"))


def test_a_study_whose_folder_is_removed_ends_in_one_line_and_is_not_made_anew(tmp_path: Path) -> None:
    process = start(*SLOW, "+model.args.step_s=0.3", "trials=2", "study=s", folder=tmp_path)
    assert within(600, lambda: bool(at_work(tmp_path / "s")))
    shutil.move(tmp_path / "s", tmp_path / "gone")
    code, said = ended(process)
    assert code == 2, said
    assert "Traceback" not in said
    assert "error:" in said
    assert str(tmp_path / "s") in said
    assert not list((tmp_path / "s").glob("cells/*/trial-*/record.json"))
