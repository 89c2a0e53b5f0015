"""`python -m runner.attach` from the command line: an ordinary study comes of it."""

import json
import sqlite3
from pathlib import Path

import documented
import pytest
from attachments import PYTHON, SCRIPTS
from conftest import call

from runner.attach import asked, refused, split
from runner.schema_attach import script_of
from runner.study import Study


@pytest.fixture(scope="module")
def studied(module_folder: Path) -> tuple[Study, str]:
    """Two modes, two rounds, with words that Hydra and the shell could take for their own; and what was said."""
    script = module_folder / "plain.py"
    for name in ("plain.py", "net.py"):
        (module_folder / name).write_text((SCRIPTS / name).read_text())
    text = script.read_text().replace(
        "torch.manual_seed(3)",
        'import fast, os\nprint(os.environ["MLFLOW_TRACKING_URI"], asked.name)\ntorch.manual_seed(3)',
    )
    script.write_text(text.replace("default=0.01)\n", 'default=0.01)\nparser.add_argument("--name")\n', 1))
    (module_folder / "fast.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    done = call(
        "runner.attach",
        *("cudnn=default,deterministic", "trials=2", "steps=10", "threads=1", "device=cpu", "study=study"),
        *("--", PYTHON, "plain.py", "--lr", "0.02", "--name", '${now:%Y} a,b "c" [d] \\'),
        folder=module_folder,
        timeout=900,
        MLFLOW_TRACKING_URI="http://the.script:1",  # the script's, as are words that others could take for their own
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Study.open(module_folder / "study"), done.stdout


def test_it_leaves_a_study_with_verdicts_and_a_report(studied: tuple[Study, str]) -> None:
    study, said = studied
    summary = json.loads(study.summary_json.read_text())
    assert [cell["label"] for cell in summary["cells"]] == ["default (F,F)", "deterministic (T,F)"]
    for cell in summary["cells"]:
        assert (cell["n"], cell["reproducibility"]["verdict"], cell["reproducibility"]["interpreters"]) == (
            2,
            "bitwise",
            2,
        )
        assert cell["speed"]["step_ms"]["mean"] > 0
        assert cell["config"]["phase"] == "attach" and cell["config"]["model"] == {"name": "plain.py"}
    words = "fast.py:2 sets torch.backends.cudnn.benchmark = True; held as the cell has it"
    assert summary["doctor"] == [{"words": words, "trials": 4}]
    report = study.report_markdown.read_text()
    assert "## Doctor" in report and "fast.py:2 sets" in report
    assert said.count(f"doctor: {words}") == 1


def test_the_script_gets_its_words_as_they_were_given(studied: tuple[Study, str]) -> None:
    study, _ = studied
    for path in study.folder.rglob("log.txt"):
        assert path.read_text() == 'http://the.script:1 ${now:%Y} a,b "c" [d] \\\n'


def test_mlflow_has_a_run_for_the_study_each_cell_and_each_trial(studied: tuple[Study, str]) -> None:
    with sqlite3.connect(studied[0].folder.parent / "mlflow.db") as store:
        (count,) = store.execute("select count(*) from runs").fetchone()
    assert count == 1 + 2 + 4


def test_the_same_command_goes_on(studied: tuple[Study, str]) -> None:
    """As `python -m runner`, by the command that study.json holds: nothing is left to do."""
    study, _ = studied
    words = study.asked()["command"]
    assert words[:3] == ["python", "-m", "runner"]
    done = call("runner", *words[3:], "tracking=off", folder=study.folder.parent, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of them are there" in done.stdout


def test_a_script_that_cannot_begin_ends_the_study_after_the_first_round(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import nothing_of_this_name\n")
    done = call(
        "runner.attach",
        *("cudnn=default,benchmark", "trials=3", "device=cpu", "tracking=off", "study=study"),
        *("--", PYTHON, "train.py"),
        folder=tmp_path,
        timeout=600,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "No module named 'nothing_of_this_name'" in done.stderr and "Traceback" not in done.stderr
    assert len(Study.open(tmp_path / "study").records()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trials=2"], "no command; give it after --"),
        (["--"], "no command; give it after --"),
        (["--", "no-such-command", "x"], "no-such-command: there is no such command"),
        (["--", ""], "'': there is no such command"),
        (["--", "."], ".: is a folder; give the command that starts the script"),
        (["--", __file__], "is no file that may be executed; say what runs it, as python "),
        (["foo", "--", PYTHON, "x"], "foo: is no word of a study; give KEY=VALUE before --"),
        (["model=resnet", "--", PYTHON, "x"], "model: is up to the script that is attached to"),
        (["train.batch_size=3", "--", PYTHON, "x"], "train.batch_size: is up to the script"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(arguments: list[str], message: str) -> None:
    said = refused(*split(arguments))
    assert message in said and "\n" not in said


def test_nothing_is_left_behind_by_a_refusal(tmp_path: Path) -> None:
    for words, message in (["precision=bf16"], "precision"), (["attach.hold=3", "steps=2"], "attach.hold"):
        done = call("runner.attach", *words, "tracking=off", "--", PYTHON, "x.py", folder=tmp_path, timeout=600)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_steps_is_short_for_train_steps() -> None:
    words = asked(["steps=7", "trials=2"], ["python", "train.py"])
    assert words == [
        *("-m", "train.steps=7", "trials=2", "phase=attach", "precision=default"),
        'attach.command=["python","train.py"]',
    ]


def test_options_of_hydra_stand_before_all_other_words() -> None:
    """Hydra takes these in one row only."""
    words = asked(["trials=2", "--config-dir", "my conf", "steps=7", "--multirun"], ["python"])
    assert words == [
        *("--config-dir", "my conf", "--multirun", "trials=2", "train.steps=7", "phase=attach", "precision=default"),
        'attach.command=["python"]',
    ]
    assert refused(["--config-dir", "my conf", "trials=2"], [PYTHON, "x"]) == ""


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python -u src/train.py --lr 1", "train.py"),
        ("python -m pkg.train x.py", "pkg.train"),
        ("torchrun --nproc_per_node 2 train.py", "train.py"),
        ("bash train.sh", "train.sh"),
        ("my-trainer", "my-trainer"),
    ],
)
def test_what_a_command_is_called(command: str, name: str) -> None:
    assert script_of(command.split()) == name


@pytest.mark.parametrize("words", documented.of("runner.attach"), ids=" ".join)
def test_what_the_documentation_shows_works(words: list[str], tmp_path: Path) -> None:
    for name, copy in (("plain.py", "train.py"), ("net.py", "net.py")):
        (tmp_path / copy).write_text((SCRIPTS / name).read_text())
    own, command = split(words)
    small = [word for word in own if word.partition("=")[0] not in ("cudnn", "trials", "steps")]
    small += ["cudnn=default", "trials=1", "steps=3", "threads=1", "device=cpu", "tracking=off", "study=study"]
    assert refused(own, command) == "" and command[0] == "python"
    done = call("runner.attach", *small, "--", PYTHON, *command[1:], folder=tmp_path, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = Study.open(tmp_path / "study").records()
    assert record.speed is not None and record.speed.steps == 3
