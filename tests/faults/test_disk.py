"""A full disk: never half a record, one message, and the same command completes the study once room was made."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from launching import PLAIN, TINY, contents, done, finals, readable, set_aside
from planted_share import fill

from runner.layout import record_file
from runner.study import Study

COMMAND = ["cudnn=default,benchmark", "seeds=all", "trials=2", "study=s"]
FULL = re.compile(r"^error: .*(No space left on device|cannot be written).*$", re.MULTILINE)


@pytest.fixture(scope="module")
def whole(module_folder: Path) -> Study:
    """The complete study on a disk with room."""
    code, said = done(*COMMAND, *PLAIN, folder=module_folder)
    assert code == 0, said
    return Study(module_folder / "s")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A folder with a disk of 3 MB of its own, in which the study is `s`."""
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(tmp_path)], capture_output=True)
    if made.returncode:
        pytest.skip(f"no disk of its own can be mounted here: {made.stderr.decode().strip()}")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def says_so_once(said: str) -> bool:
    """Whether one line says that the disk is full, names the study and tells the way on; no traceback."""
    lines = FULL.findall(said) and [line for line in said.splitlines() if line.startswith("error: ")]
    return len(lines) == 1 and "make room" in lines[0] and "/s" in lines[0] and "Traceback" not in said


def free(folder: Path) -> int:
    """Free pages of a disk."""
    return shutil.disk_usage(folder).free // 4096


def completes(words: list[str], small: Path) -> None:
    """Make room: the same command does the rest, and nothing of what was there is lost."""
    study = Study(small / "s")
    os.truncate(small / ".filled", 0)
    assert not study.folder.exists() or readable(study)
    code, said = done(*words, folder=small)
    assert code == 0, said
    assert readable(study)


def test_a_disk_that_is_full_before_the_start_refuses_the_study(whole: Study, small: Path) -> None:
    fill(small)
    code, said = done(*COMMAND, *PLAIN, folder=small)
    assert code == 2 and "Traceback" not in said and said.count("error: ") == 1, said
    assert re.match(r"error: study=\S+/s: cannot be written \(.*No space left on device.*\)", said)
    completes([*COMMAND, *PLAIN], small)
    assert finals(Study(small / "s")) == finals(whole)


@pytest.mark.parametrize("pages", [0, *(pytest.param(pages, marks=pytest.mark.slow) for pages in (6, 12))])
def test_a_disk_that_fills_while_a_trial_trains_costs_no_record(pages: int, small: Path) -> None:
    model = ["model._target_=planted_share.FillsDisk", f"+model.args.folder={small}", f"+model.args.pages={pages}"]
    words, study = [*COMMAND, *TINY, *model], Study(small / "s")
    code, said = done(*words, folder=small)
    assert code not in (0, 2) and "Traceback" not in said, said
    assert says_so_once(said) or "No space left" in said, said
    assert readable(study)
    before = contents(study.folder / "cells")
    finished = {
        (one.cell, one.number): record_file(study.trial_folder(one.cell, one.number)) for one in study.records()
    }
    finished = {key: path for key, path in finished.items() if key in finals(study)}
    completes(words, small)
    assert len(finals(study)) == 4 and all(path.read_bytes() for path in finished.values())
    kept = {name: data for name, data in contents(study.folder / "cells").items() if name in before}
    assert all(kept[str(path.relative_to(study.folder / "cells"))] == path.read_bytes() for path in finished.values())
    assert [path.name for path in study.folder.rglob(".*.json.*")] == []


@pytest.mark.parametrize("pages", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_disk_without_room_for_the_report_says_so_and_keeps_all_records(
    pages: int, whole: Study, small: Path
) -> None:
    study = Study(Path(shutil.copytree(whole.folder, small / "s")))
    os.remove(study.summary_json)
    before = contents(study.folder / "cells")
    fill(small, pages)
    assert free(small) == pages
    code, said = done(*COMMAND, *PLAIN, folder=small)
    if code:
        assert code in (1, 2) and "Traceback" not in said, said
        assert len(re.findall(r"^error: \S+/s: cannot be written .*make room", said, re.MULTILINE)) == 1
        assert said.count("error: ") == 1
    else:
        assert study.summary_json.is_file()
    assert contents(study.folder / "cells") == before
    completes([*COMMAND, *PLAIN], small)
    assert contents(study.folder / "cells") == before
    assert set_aside(study) == []
