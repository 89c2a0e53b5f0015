"""The report: its words, its files byte for byte, its command."""

import csv
import gc
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from factory import CPU, GPU, Plant, four_modes, make_cell, make_study
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt  # comes with rich
from summaries import make_summary

from runner.analysis.words import percent
from runner.errors import StudyError
from runner.jsonfile import read_json
from runner.layout import record_file
from runner.report import terminal, write_report
from runner.report.answer import answers
from runner.report.markdown import bullets, escaped, markdown, table
from runner.report.number import NONE, memory, number, number_and_sd
from runner.report.sheet import sheet
from runner.report.terminal import show
from runner.report.text import one_line

ROOT = Path(__file__).parent.parent


def files(study):
    return [path.read_bytes() for path in (study.summary_json, study.summary_csv, study.report_markdown)]


def report_of(study):
    write_report(study)
    return study.report_markdown.read_text()


def table_of(text, column):
    """One column of a report's first table."""
    first = next(part for part in text.split("\n\n") if part.startswith("|"))
    lines = [line.split(" | ") for line in first.splitlines()]
    index = lines[0].index(column)
    return [line[index] for line in lines[2:]]


def command(*arguments, **options):
    line = [sys.executable, "-m", "runner.report", *arguments]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, **options)


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
    assert "- fastest: benchmark (F,T) (least time" in text
    assert "| 1, the baseline |" in text
    assert "20 % faster" in text
    assert "| 5 of 5 | weights differ, 5 different of 5 |" in text
    assert "| 1 of 5 | bitwise, 5 of 5 |" in text
    assert "first loss difference at step 3, weights equal after step 2, differ after step 4" in text
    assert "5 processes from 1 interpreter; the chance that a further one differs is below 53 % at 95 %" in text
    assert "two trials disagree on 3 % of the predictions [" in text
    assert "driver" not in text
    assert table_of(text, "tuning s") == ["\u2013", "2.00", "\u2013", "1.90"]


def test_rebuilding_gives_the_same_bytes(tmp_path):
    study = four_modes(tmp_path / "study")
    write_report(study)
    first = files(study)
    for path in (study.summary_json, study.summary_csv, study.report_markdown):
        path.unlink()
    write_report(study)
    assert files(study) == first


def test_the_collector_is_off_for_a_report_alone_also_for_one_that_fails(tmp_path):
    study = four_modes(tmp_path / "study", rounds=2)
    write_report(study)
    assert gc.isenabled()
    study.study_json.unlink()
    with pytest.raises(StudyError):
        write_report(study)
    assert gc.isenabled()


def test_csv_has_a_row_a_cell(tmp_path):
    study = four_modes(tmp_path / "study")
    write_report(study)
    rows = list(csv.DictReader(study.summary_csv.read_text().splitlines()))
    assert [row["label"] for row in rows][:2] == ["default (F,F)", "benchmark (F,T)"]
    interval = read_json(study.summary_json, 1)["cells"][1]["speed"]["ratio_to_baseline"]["ci95"]
    assert [float(rows[1][f"speed.ratio_to_baseline.ci95.{end}"]) for end in ("low", "high")] == interval


def test_csv_has_lists_in_one_field():
    plans = [{"step_ms": 12.1, "trials": 6, "ratio": 0.85}, {"step_ms": 14.5, "trials": 4, "ratio": None}]
    summary = make_summary(("benchmark", {"plans": plans, "left_out": [{"trial": 3, "why": "heat"}]}))
    (row,) = csv.DictReader(sheet(summary).splitlines())
    assert row["speed.plans"] == "step_ms=12.1 trials=6 ratio=0.85; step_ms=14.5 trials=4 ratio=None"
    assert row["speed.left_out"] == "trial=3 why=heat"


def test_a_new_study_is_named_where_this_one_has_no_look_left():
    summary = make_summary(("default", {}), ("benchmark", {}))
    ratio = {"verdict": "undecided", "rounds": [24, 90], "new_study": True}
    summary["cells"][1]["speed"]["ratio_to_baseline"] = summary["cells"][1]["speed"]["ratio_to_baseline"] | ratio
    assert "undecided: 24 to 90 rounds of a new study would settle it" in table(summary)


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

    def swapped(cell, number):
        return GPU | {"gpu_uuid": f"GPU-{(number + cell.config['cudnn']['benchmark']) % 2}"}

    plants = [(make_cell(), Plant()), (make_cell("benchmark"), Plant(ratio=0.8))]
    text = report_of(make_study(tmp_path / "swapped", plants, environment=swapped))
    assert "], unpaired (no round has both on the same GPU and host), 20 % faster" in text
    text = report_of(make_study(tmp_path / "spread", plants, environment=spread))
    assert " no interval, unpaired (they ran on different cards), undecided |" in text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a|b *c* `d` ~e~", r"a\|b \*c\* \`d\` \~e\~"),
        ("<img src=x> & co", "&lt;img src=x&gt; &amp; co"),
        ("[x](y) [1, 2] \\", r"\[x\](y) [1, 2] \\"),
        ("a ![x](y) [x][y] [x]: y", r"a ![x\](y) [x\][y] [x\]: y"),
        ("- 1 # a", r"\- 1 # a"),
        ("12. a 1. b", r"12\. a 1. b"),
        ("1.5 [1.4, 1.6]", "1.5 [1.4, 1.6]"),
        ("\x1b[31m\u202e\x00\udcff", "\ufffd[31m\ufffd\ufffd\ufffd"),
        ("costs $1$", r"costs \$1\$"),
        ("_so_ __init__ deterministic_benchmark", r"\_so\_ \_\_init\_\_ deterministic_benchmark"),
        ("two\nlines", "two lines"),
    ],
)
def test_text_stays_text_in_markdown(text, written):
    assert escaped(text) == written


MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])  # GitHub's, less its autolinks
BITS = (
    r"<script> <!-- ![a](b) [x](javascript:alert(1)) [x] [x]: (y) &lt; &#60; ` `` $ | \ \| * ** _ __ ~~ # ## - --- + >"
)
SPACES = ["\n", "\n\n", "\t", "\r", "\u2028", "\x85", " ", "    "]
CONTROLS = ["\x00", "\x1b[2J", "\u202e", "\ud800"]
pieces = st.sampled_from([*BITS.split(), *SPACES, *CONTROLS, "1.", "2)", "=", "a", "b1", "http:", "<http://x>"])
hostile = st.lists(pieces | st.characters()).map("".join)


def shown(text):
    """What a reader sees of a Markdown text: the kinds of its blocks, and of each inline text its kinds and words."""
    tokens = MARKDOWN.parse(text)
    inlines = [token.children for token in tokens if token.type == "inline"]
    return (
        [token.type for token in tokens if token.type != "inline"],
        {child.type for children in inlines for child in children},
        ["".join(child.content for child in children) for children in inlines],
    )


@given(hostile)
@example("[x](javascript:alert(1))")
@example("<script>alert(1)</script>")
@example("a|b\\|c")
@example("a heading ##")
def test_nothing_in_a_text_becomes_markup(text):
    line, written = one_line(text), escaped(text)
    assert not re.search(r"[<>\n\r\x00-\x1f\x7f-\x9f\u2028\u202e\ud800-\udfff]", written)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`|]", written)
    blocks, kinds, words = shown(bullets([text]))
    assert blocks[:2] == ["bullet_list_open", "list_item_open"] and len(blocks) == (6 if line else 4)
    assert kinds <= {"text"} and words == ([line] if line else [])
    _, kinds, words = shown(f"| a | b |\n| --- | --- |\n| {written} | c |")
    assert kinds <= {"text"} and words == ["a", "b", line, "c"]
    assert shown(f"# {written}") == (["heading_open", "heading_close"], {"text"} if line else set(), [line])


EVIL = "<script>alert(1)</script> ![x](javascript:a) `b` | ~~c~~ \x1b[31m\n# d"


def planted_evil(folder):
    """A study in which everything that a user names is hostile."""
    settings = {
        "model": {"name": EVIL, "args": {EVIL: EVIL}},
        "dataset": {"name": f"data {EVIL}", "path": EVIL},
        "precision": EVIL,
    }
    plants = [
        (make_cell(**settings, train={"note": EVIL}), Plant(flags_after={EVIL: EVIL})),
        (make_cell("benchmark", **settings), Plant(outcomes={1: "failed", 2: "diverged"}, weights_step=1)),
    ]
    where = GPU | {"gpu_name": EVIL, "driver": EVIL, "host": EVIL}
    study = make_study(folder / EVIL.replace("/", "_"), plants, environment=lambda cell, number: where)
    for record in study.records():
        metrics = {EVIL: 0.5, f"z{EVIL}": None} if record.complete else {}
        reason = None if record.complete else f"{EVIL}\udcff"
        flags = record.flags | {"requested": record.flags["requested"] | {EVIL: 0}}
        changed = replace(record, metrics=metrics, reason=reason, flags=flags)
        changed.write(record_file(study.trial_folder(record.cell, record.number)))
    record_file(study.trial_folder(study.cells()[0].id, 4)).write_text("{")
    return study


def test_nothing_that_a_user_names_becomes_markup(tmp_path):
    study = planted_evil(tmp_path)
    summary = write_report(study)
    text = study.report_markdown.read_text()
    sections = dict(part.partition("\n\n")[::2] for part in text.split("## ")[1:])
    titles = (
        "More figures",
        "Notes",
        "Repeatability",
        "What the change did",
        "Trials that did not finish",
        "Records set aside",
    )
    block = sections.pop("Environment")
    assert "<script>" in block and all(line.startswith("    ") for line in block.splitlines() if line)
    for title in titles:
        assert "&lt;script&gt;" in sections.pop(title), title
    assert sections == {}
    note = f"{bullets(answers(summary))}\n\n{table(summary)}\n"
    for page in (text, note):
        blocks, kinds, words = shown(page)
        assert kinds == {"text"} | (set() if page is note else {"softbreak", "strong_open", "strong_close"})
        assert not {"html_block", "fence", "hr"} & set(blocks)
        assert blocks.count("code_block") == (0 if page is note else 1)
        assert not any("\x1b" in word for word in words)
        tables = 1 if page is note else 2
        assert blocks.count("table_open") == tables and blocks.count("tr_open") == 3 * tables
        assert blocks.count("heading_open") == (0 if page is note else 8)
        assert len(words) > 10 and any(
            "<script>alert(1)</script> ![x](javascript:a) `b` | ~~c~~" in word for word in words
        )


def test_a_terminal_gets_no_control_characters(tmp_path, capsys):
    show(write_report(planted_evil(tmp_path)), tmp_path)
    out = capsys.readouterr().out
    assert "<script>" in out and "diverged" in out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", out)


def test_a_trial_that_did_not_finish_is_named_with_outcome_and_reason_in_short(tmp_path):
    outcomes = {1: "failed", 2: "diverged", 3: "timed_out", 4: "interrupted"}
    study = make_study(tmp_path / "study", [(make_cell(), Plant(outcomes=outcomes))])
    path = record_file(study.trial_folder(study.cells()[0].id, 1))
    replace(study.records()[1], reason="line\n" * 100).write(path)
    section = report_of(study).split("## Trials that did not finish\n\n")[1].split("\n\n")[0].splitlines()
    assert section == [
        f"- default (F,F), trial 1: failed, {'line ' * 60}...",
        "- default (F,F), trial 2: diverged, planted: diverged",
        "- default (F,F), trial 3: timed_out, planted: timed_out",
        "- default (F,F), trial 4: interrupted, planted: interrupted",
    ]


def test_failed_diverged_and_missing_trials_are_counted_in_the_table_of_report_and_terminal(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(terminal, "FILE_WIDTH", 400)
    outcomes = {1: "failed", 2: "timed_out", 3: "diverged"}
    plants = [(make_cell(), Plant(outcomes=outcomes)), (make_cell("benchmark"), Plant())]
    study = make_study(tmp_path / "study", plants, rounds=11)
    record_file(study.trial_folder(study.cells()[0].id, 5)).unlink()
    summary = write_report(study)
    words = ["7, 1 diverged, 1 failed, 1 timed out, 1 missing", "11"]
    text = study.report_markdown.read_text()
    assert table_of(text, "trials") == words
    assert text.splitlines()[4] == "- partial: 21 of 22 trials are there, so the verdicts are provisional"
    show(summary, tmp_path)
    out = capsys.readouterr().out
    assert words[0] in out
    assert "- partial: 21 of 22 trials are there, so the verdicts are provisional\n" in out


def test_a_cell_that_only_diverged_says_so(tmp_path):
    text = report_of(
        make_study(tmp_path / "study", [(make_cell(), Plant(outcomes=dict.fromkeys(range(5), "diverged")))])
    )
    assert table_of(text, "trials") == ["0, 5 diverged"]
    assert text.count(": diverged, planted: diverged\n") == 5


def test_no_mean_over_a_hole_stays(tmp_path):
    plant = Plant(metrics={1: {"accuracy": None, "loss": 0.3}})
    assert "- default (F,F): no mean over a hole: finite accuracy in 4 of 5 trials\n" in report_of(
        make_study(tmp_path / "study", [(make_cell(), plant)])
    )


def test_a_figure_that_is_no_number_is_none():
    assert [number(value) for value in (float("nan"), float("inf"))] == [NONE, NONE]
    assert number_and_sd(1e200, float("inf"), None) == number(1e200)  # a damaged record's value
    assert number_and_sd(float("nan"), 1.0, (0.0, 1.0)) == NONE


ASCII = [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, {"LC_ALL": "C"}]


@pytest.mark.parametrize("variables", ASCII)
def test_a_terminal_that_lacks_a_character_gets_another(variables, tmp_path):
    plants = [(make_cell(dataset={"name": "\u6570\u5b57"}), Plant()), (make_cell("benchmark"), Plant(steady=False))]
    study = make_study(tmp_path / "study \u00e4", plants, environment=lambda cell, number: CPU | {"cpu": "\u0416"})
    record_file(study.trial_folder(study.cells()[0].id, 0)).write_text("{")
    done = command(str(study.folder), env=os.environ | variables)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1
    assert "partial: 9 of 10 trials are there" in done.stdout and "default (F,F)" in done.stdout
    assert ("resnet on ??" in done.stdout) is done.stdout.isascii()
    assert "\u6570\u5b57" in study.report_markdown.read_text(encoding="utf-8")


def test_an_output_that_takes_nothing_costs_nothing(tmp_path):
    study = four_modes(tmp_path / "study", rounds=2)
    line = f"{sys.executable} -m runner.report '{study.folder}'"
    for where in (">/dev/full", "| true; exit ${PIPESTATUS[0]}", ">&-"):
        study.report_markdown.unlink(missing_ok=True)
        done = subprocess.run(["bash", "-c", f"{line} {where}"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), where
        assert study.report_markdown.is_file()


def test_a_narrow_terminal_folds_and_loses_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # taken for a terminal
    monkeypatch.setenv("COLUMNS", "80")
    show(write_report(four_modes(tmp_path / "study")), tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines) <= 80
    assert not any("\u2026" in line for line in lines)


def test_cpu_is_not_ranked(tmp_path):
    text = report_of(four_modes(tmp_path / "study", environment=lambda cell, number: CPU))
    assert "- no ranking: without CUDA the flags cannot act: leave them as they are, or measure on a GPU\n" in text
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
