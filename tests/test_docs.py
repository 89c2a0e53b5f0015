"""What README.md and docs/ tell a reader to type is what the runner takes."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import call, study
from documented import ALL, PAGES, ROOT, of
from test_expand import expanded

from runner.attach import split

LINK = re.compile(r"\]\((?!https?:)([^)#]+)(#[^)]*)?\)")
COMMANDS = {"report", "why", "upload", "compare", "certify", "check", "attach"}


def sweeps() -> list[list[str]]:
    """The words of every documented study."""
    return [[word for word in words if word != "-m"] for words in of("runner")]


def test_there_are_commands_for_everything() -> None:
    assert len(ALL) > 40
    assert all(of(f"runner.{command}") for command in COMMANDS)


@pytest.mark.parametrize("words", sweeps(), ids=" ".join)
def test_every_study_that_is_shown_passes_the_settings(words: list[str]) -> None:
    if {"--help", "--cfg", "--config-dir"} & set(words):
        pytest.skip("a matter of Hydra's own words, tried where they are at home")
    cells = expanded(*words)
    assert cells
    assert len({asked.cell.id for asked in cells}) == len(cells)


@pytest.mark.parametrize("words", of("runner.attach"), ids=" ".join)
def test_every_attached_script_that_is_shown_has_words_and_a_command(words: list[str]) -> None:
    own, command = split(words)
    assert command[0] in ("python", "bash", "torchrun")
    assert all("=" in word for word in own)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


SMOKE = ["train.steps=2", "train.epochs=null", "train.batch_size=8", "trials=1", "device=cpu", "tracking=off"]
SMOKE += ["calls.times=10"]
OF_READERS = {"--config-dir", "model=custom", "recipe=post_modes", "STUDY", "--help", "--cfg"}


def smoke(words: list[str]) -> list[str]:
    """A documented study with few steps, small images, one round, no MLflow; a key that it gives itself is replaced."""
    replaced = {word.partition("=")[0] for word in SMOKE} | {"study"}
    left = [word for word in words if word.partition("=")[0] not in replaced]
    return [*(re.sub(r"^dataset\.size=\d+$", "dataset.size=64", word) for word in left), *SMOKE]


def test_a_study_is_tried_with_little_of_everything() -> None:
    tried = smoke(["phase=calls", "dataset.size=224", "calls.times=100", "calls.backward=false,true", "study=s"])
    assert tried[:3] == ["phase=calls", "dataset.size=64", "calls.backward=false,true"]
    assert "calls.times=10" in tried and "study=s" not in tried


@pytest.mark.slow
@pytest.mark.parametrize("words", [words for words in sweeps() if not OF_READERS & set(words)], ids=" ".join)
def test_every_study_that_is_shown_works_at_a_small_size(words: list[str], tmp_path: Path) -> None:
    done = call("runner", "-m", *smoke(words), "study=done", folder=tmp_path, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "done" / "report.html").is_file()


@pytest.fixture(scope="module")
def readers(module_folder: Path) -> Path:
    """A reader's folder with the studies that the pages speak of: STUDY, THEIRS and those under studies/."""
    words = ["model.cifar_stem=false", "train.steps=10", "train.batch_size=8", "trials=2", "threads=1", "device=cpu"]
    study(*words, folder=module_folder)
    named = {word for command in COMMANDS for words in of(f"runner.{command}") for word in words}
    for name in {"STUDY", "THEIRS", *(word for word in named if word.startswith("studies/"))}:
        shutil.copytree(module_folder / "study", module_folder / name)
    return module_folder


FINISHED = [
    (f"runner.{command}", words)
    for command in sorted(COMMANDS - {"attach"})  # certify comes before check
    for words in of(f"runner.{command}")
    if "tracking.uri=http://HOST:PORT" not in words
]


@pytest.mark.parametrize(("module", "words"), FINISHED, ids=lambda one: one if isinstance(one, str) else " ".join(one))
def test_every_command_on_a_finished_study_works(module: str, words: list[str], readers: Path) -> None:
    done = call(module, *words, folder=readers, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
