"""docs/own-model.md: its files and its commands, as they stand there but for their size."""

import re
import shlex
from pathlib import Path

import pytest
from conftest import call

from runner.study import Study

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "own-model.md").read_text(encoding="utf-8")
SMALL = {"trials": "1", "train.steps": "2", "threads": "1", "tracking": "off", "device": "cpu", "cudnn": "default"}


def blocks() -> list[tuple[str, str]]:
    """The indented blocks of the page, each with the line before it."""
    found = re.findall(r"^(\S[^\n]*)\n\n((?:    [^\n]*\n|\n+(?=    ))+)", PAGE, re.MULTILINE)
    return [(lead, re.sub(r"^    ", "", text, flags=re.MULTILINE)) for lead, text in found]


COMMANDS = [
    part.replace("\\\n", " ")
    for text in re.findall(r"(?:^    [^\n]*\n)+", PAGE, re.MULTILINE)
    for part in [re.sub(r"^    ", "", text, flags=re.MULTILINE)]
    if part.startswith("python -m runner")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, where its text says that they are."""
    root = tmp_path_factory.mktemp("page")
    for lead, text in blocks():
        names = re.findall(r"`([\w/]+\.(?:py|yaml))`", lead)
        if names:
            path = root / names[-1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return root


def test_the_page_has_files_and_commands(folder: Path) -> None:
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
    assert files == ["my_boxes.py", "my_conf/cudnn/disabled.yaml", "my_conf/model/net.yaml", "my_task.py"]
    assert len(COMMANDS) == 5


@pytest.mark.parametrize("number", [0, 1, *(pytest.param(number, marks=pytest.mark.slow) for number in (2, 3, 4))])
def test_each_command_does_what_the_page_says(number: int, folder: Path) -> None:
    words = shlex.split(COMMANDS[number])[2:]
    own = "--config-dir" in words
    small = {key: value for key, value in SMALL.items() if not (own and key == "cudnn")}
    kept = [word for word in words if word.split("=")[0] not in small]
    if "train.batch_size" not in COMMANDS[number]:
        small["train.batch_size"] = "8"
    study = f"study=s{number}"
    done = call(*kept, *(f"{key}={value}" for key, value in small.items()), study, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    records = Study.open(folder / study.partition("=")[2]).records()
    assert [record.outcome for record in records] == ["finished"] * (10 if own else 1)
