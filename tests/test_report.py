"""The report: its words, its files byte for byte, its command."""

import csv
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from factory import CPU, GPU, Plant, four_modes, make_cell, make_study

from runner.jsonfile import read_json
from runner.report import write_report
from runner.report.markdown import escaped, markdown
from runner.report.number import NONE, memory, number, number_and_sd, percent
from runner.report.terminal import show
from runner.study import Study, record_file

ROOT = Path(__file__).parent.parent


def files(study):
    return [path.read_bytes() for path in (study.summary_json, study.summary_csv, study.report_markdown)]


def report_of(study):
    write_report(study)
    return study.report_markdown.read_text()


def table_of(text, column):
    """One column of a report's table."""
    lines = [line.split(" | ") for line in text.splitlines() if line.startswith("|")]
    index = lines[0].index(column)
    return [line[index] for line in lines[2:]]


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "runner.report", *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("value", "text"), [(0.80312, "0.803"), (35.71, "35.7"), (1234.5, "1234"), (0.0, "0.00"), (None, NONE)]
)
def test_number(value, text):
    assert number(value) == text


def test_numbers_follow_their_precision():
    assert number_and_sd(35.714, 0.214, (35.448, 35.98)) == "35.71 (sd 0.21) [35.45, 35.98]"
    assert number_and_sd(0.91234, 0.00041, None) == "0.91234 (sd 0.00041)"
    assert number_and_sd(35.714, None, None) == "35.7"
    assert number_and_sd(0.9, 0.0, (0.9, 0.9)) == "0.900 (sd 0)"
    assert [percent(share) for share in (0.02, 0.0152, 0.197, 1.2)] == ["2 %", "1.5 %", "20 %", "120 %"]
    assert [memory(size) for size in (2_300_000_000, 812_000_000)] == ["2.30 GB", "812 MB"]


def test_report_of_the_usual_study(tmp_path):
    text = report_of(four_modes(tmp_path / "study"))
    assert text.startswith("# resnet on digits, precision fp32, NVIDIA H200\n")
    assert "- fastest: benchmark (F,T) (least step time" in text
    assert "| 1, the baseline |" in text
    assert "20 % faster" in text
    assert "| 5 of 5 | weights differ, 5 different of 5 |" in text
    assert "| 1 of 5 | bitwise, 5 of 5 |" in text
    assert "first loss difference at step 3, weights equal after step 2, differ after step 4" in text
    assert "5 processes from 1 interpreter; the chance that a further one differs is below 53 % at 95 %" in text
    assert "two trials disagree on 3 % of the predictions [" in text
    assert "driver" not in text
    assert table_of(text, "tuning s") == ["\u2013", "2.00", "none seen", "1.90"]


def test_rebuilding_gives_the_same_bytes(tmp_path):
    study = four_modes(tmp_path / "study")
    write_report(study)
    first = files(study)
    for path in (study.summary_json, study.summary_csv, study.report_markdown):
        path.unlink()
    write_report(study)
    assert files(study) == first


def test_csv_has_a_row_a_cell(tmp_path):
    study = four_modes(tmp_path / "study")
    write_report(study)
    rows = list(csv.DictReader(study.summary_csv.read_text().splitlines()))
    assert [row["label"] for row in rows][:2] == ["default (F,F)", "benchmark (F,T)"]
    interval = read_json(study.summary_json, 1)["cells"][1]["speed"]["ratio_to_baseline"]["ci95"]
    assert [float(rows[1][f"speed.ratio_to_baseline.ci95.{end}"]) for end in ("low", "high")] == interval


def test_loss_only_and_metric_only_are_told_in_words(tmp_path):
    plants = [(make_cell(), Plant(loss_step=4)), (make_cell("benchmark"), Plant(evaluation=True))]
    text = report_of(make_study(tmp_path / "study", plants))
    assert "weights bitwise equal, the logged training loss differs (weights equal in 5 of 5)" in text
    assert "weights bitwise equal, evaluation metrics differ (weights equal in 5 of 5)" in text


def test_equivalence_is_printed_with_its_figure(tmp_path):
    plants = [(make_cell(), Plant(noise=0.0001)), (make_cell("benchmark"), Plant(ratio=0.985, noise=0.0001))]
    assert "equivalent within 2 %: 1.5 % faster" in report_of(make_study(tmp_path / "study", plants))


def test_undecided_says_how_many_rounds(tmp_path):
    plants = [(make_cell(), Plant(noise=0.05)), (make_cell("benchmark"), Plant(noise=0.05))]
    text = report_of(make_study(tmp_path / "study", plants))
    assert "undecided: " in text
    assert "rounds in all would settle it" in text


def test_rounds_beyond_the_cap_are_named_by_the_summary(tmp_path):
    plants = [(make_cell(), Plant(noise=0.05)), (make_cell("benchmark"), Plant(noise=0.05))]
    summary = write_report(make_study(tmp_path / "study", plants))
    assert summary["most_rounds"] == 1000
    summary["cells"][1]["speed"]["ratio_to_baseline"]["rounds"] = (12, None)
    summary["most_rounds"] = 300
    assert "12 to more than 300 rounds in all would settle it" in markdown(summary)
    summary["cells"][1]["speed"]["ratio_to_baseline"]["rounds"] = (None, None)
    assert "undecided: more than 300 rounds would settle it" in markdown(summary)


def test_unpaired_ratios_say_why(tmp_path):
    def spread(cell, number):
        return GPU | {"gpu_uuid": f"GPU-{cell.config['cudnn']['benchmark']}"}

    plants = [(make_cell(), Plant()), (make_cell("benchmark"), Plant(ratio=0.8))]
    text = report_of(make_study(tmp_path / "study", plants, environment=spread))
    assert "], unpaired (no round has both on the same GPU and host), 20 % faster" in text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a|b *c* `d` ~e~", r"a\|b \*c\* \`d\` \~e\~"),
        ("<img src=x> & co", "&lt;img src=x&gt; &amp; co"),
        ("[x](y) [1, 2] \\", r"[x\](y) [1, 2] \\"),
        ("_so_ __init__ deterministic_benchmark", r"\_so\_ \_\_init\_\_ deterministic_benchmark"),
        ("two\nlines", "two lines"),
    ],
)
def test_text_stays_text_in_markdown(text, written):
    assert escaped(text) == written


def test_a_narrow_terminal_folds_and_loses_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # taken for a terminal
    monkeypatch.setenv("COLUMNS", "80")
    show(write_report(four_modes(tmp_path / "study")))
    lines = capsys.readouterr().out.splitlines()
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines) <= 80
    assert not any("\u2026" in line for line in lines)


def test_cpu_is_not_ranked(tmp_path):
    text = report_of(four_modes(tmp_path / "study", environment=lambda cell, number: CPU))
    assert "- no ranking: the flags cannot act here: no CUDA in use\n" in text
    assert "fastest" not in text
    assert "CPU X" in text.splitlines()[0]


def test_doubts_and_failures_are_shown(tmp_path):
    plants = [
        (make_cell(), Plant(steady=False, flags_after={"benchmark": True})),
        (make_cell("benchmark"), Plant(enqueue_share=0.99, outcomes={1: "timed_out"})),
    ]
    text = report_of(make_study(tmp_path / "study", plants))
    assert "too few steps for a steady figure (16 a trial)" in text
    assert "read back as True after training" in text
    assert "bound by the host" in text
    assert "benchmark (F,T), trial 1: timed_out, planted: timed_out" in text


def test_interpreters_are_counted(tmp_path):
    plants = [(make_cell(), Plant())]
    new = make_study(tmp_path / "new", plants, interpreter=str)
    assert "5 processes from 5 interpreters" in report_of(new)
    two = make_study(tmp_path / "two", plants, interpreter=lambda number: str(number % 3))
    assert "that a new start of Python does below 78 %" in report_of(two)


def test_command_rebuilds_and_prints_the_table(tmp_path):
    study = four_modes(tmp_path / "study", rounds=2)
    done = command(str(study.folder))
    assert done.returncode == 0, done.stderr
    assert "benchmark (F,T)" in done.stdout
    assert study.report_markdown.is_file()


def test_command_says_in_one_line_what_is_wrong(tmp_path):
    study = four_modes(tmp_path / "study", rounds=1)
    path = record_file(study.trial_folder(study.cells()[0].id, 0))
    path.write_text("{")
    for folder, named in ((tmp_path / "none", "none"), (study.folder, str(path))):
        done = command(str(folder))
        assert done.returncode == 2
        assert named in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def publishing():
    spec = importlib.util.spec_from_file_location("publish_results", ROOT / "scripts" / "publish_results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_published_pages_nest_their_headings_and_name_no_machine(tmp_path, publishing):
    study = make_study(tmp_path / "one", [(make_cell(), Plant())])
    asked = {"rounds": 0, "command": ["python", "-m", "runner", "trials=5", "study=/home/me"], "started": "today"}
    empty = Study.create(tmp_path / "two", asked, [make_cell()])
    (tmp_path / "README.md").write_text("a\n<!-- results: begin -->\nold\n<!-- results: end -->\nz\n")
    summary = publishing.published(write_report(study))
    publishing.publish("page", [("A title", empty, summary)], tmp_path)
    page = (tmp_path / "docs" / "results" / "page.md").read_text()
    heads = [line for line in page.splitlines() if line.startswith("#")]
    assert heads[:3] == [
        "# Measured: the four modes",
        "## A title",
        "### resnet on digits, precision fp32, NVIDIA H200",
    ]
    assert heads[3:] == ["#### Repeatability", "#### Environment"]
    assert "    python -m runner trials=5\n" in page
    for text in (page, (tmp_path / "docs" / "results" / "page" / "two.json").read_text()):
        assert "NVIDIA H200" in text
        assert "node1" not in text and "GPU-1" not in text
    readme = (tmp_path / "README.md").read_text().splitlines()
    assert readme[2].startswith("| mode | step ms |")
    assert (readme[0], readme[-1], "old" in readme) == ("a", "z", False)
