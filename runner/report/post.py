"""The page that answers a post about the two flags, statement by statement, from the studies of the post_ recipes."""

from collections.abc import Iterable
from typing import Any

from runner.analysis.words import across_words
from runner.report.markdown import escaped, grid
from runner.report.number import NONE, memory, number
from runner.report.recipe import cell_words, measured_words, place_words, published_words, verdict_words

Summaries = dict[str, dict[str, Any]]  # by recipe

STATEMENTS = {
    "a": "Benchmark is on by default, and having both flags off is rarely used.",
    "b": "Each combination has its character: (T,F) identical results, slowest by 15-20 %; (F,T) fastest, results "
    "differ in the fifth or sixth digit; (T,T) contradictory, benchmark is ignored; (F,F) in the middle in both.",
    "c": "A loop of 100 calls of a convolution shows it: 1.523 s against 1.285 s, 18.5 %.",
    "d": "With benchmark the first call takes 0.5 s and later ones 0.01 s; with image sizes that change it is "
    "inefficient.",
    "e": "An LSTM is tuned again for each of the sequence lengths 10, 20, 30.",
    "f": "Convolution, pooling, normalisation, activation and recurrent layers are what cuDNN runs.",
    "g": "The same convolution on the same input is bitwise equal with deterministic and differs in the last digit "
    "without.",
    "h": "Deterministic picks the most stable algorithm.",
    "i": "Without benchmark it is always the same algorithm: predictable.",
    "j": "With fixed flags others can reproduce exactly 87.3 %.",
    "k": "With fixed flags a model with 87.1 % is surely better than one with 85.2 %.",
    "l": "Differences are about 1e-7, from rounding and the order of summation.",
    "m": "It advises flags for daily work, reproducing papers, competitions, large data sets, hyper-parameter search "
    "and real-time inference.",
    "n": "It names ResNet, VGG-16, U-Net, LSTM and Faster R-CNN as the networks that this is about.",
}
INTRODUCTION = """\
PyTorch runs convolutions on NVIDIA GPUs through a library, cuDNN, that has several algorithms for the same operation.
Two switches steer the choice. `torch.backends.cudnn.deterministic` allows only algorithms that give the same bits every
time; `torch.backends.cudnn.benchmark` tries several out at the first call and keeps the fastest. A mode is written as
the pair (deterministic, benchmark): (F,F) is both off. A blog post for practitioners explains them. Here stands, for
every statement of that post, what we measured. Each measurement is a study of its own: the same work in every mode,
several times, each in a fresh process, because within one process the modes disturb each other. "Agrees" and "differs"
compare the post's figure with our 95 % interval; nothing here says that the post was wrong about its own machine.
"""
EXPLAINED = {
    "j": "Another torch or another GPU is another study: run the same command there, and compare the two folders with "
    "python -m runner.compare",
    "n": "Faster R-CNN has a study of its own, post_detector: neither flag reaches the backward pass of its roi_align, "
    "which is none of cuDNN's and adds in any order",
}
MOST_IN_A_LINE = 3
SEARCH_STEPS = 300  # of a short training, as a search for hyper-parameters does hundreds


def post_page(summaries: Summaries, links: dict[str, str]) -> str:
    """The page as Markdown; `links` are the pages of the recipes. What has no study is not measured yet."""
    rows = {letter: _rows(summaries, letter) for letter in STATEMENTS}
    lines = [["", "the post says", "measured", "study"]]
    lines += [
        [f"({letter})", text, _line(letter, rows[letter]), _studies(rows[letter])]
        for letter, text in STATEMENTS.items()
    ]
    parts = ["# A post about the two cuDNN flags, measured again", INTRODUCTION, grid(lines)]
    parts += [_places(summaries), _advice(summaries)]
    parts += [_section(letter, rows[letter]) for letter in STATEMENTS if rows[letter]]
    parts += [_made_by(links)] if links else []
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _rows(summaries: Summaries, letter: str) -> list[tuple[str, dict[str, Any]]]:
    """The rows about a statement, each with the recipe whose study measured it."""
    found = [(name, summary["recipe"]) for name, summary in sorted(summaries.items()) if summary.get("recipe")]
    return [(name, row) for name, recipe in found for row in recipe["rows"] if row.get("statement") == letter]


def _line(letter: str, rows: list[tuple[str, dict[str, Any]]]) -> str:
    return ". ".join(filter(None, [_short(rows), EXPLAINED.get(letter, "")]))


def _short(rows: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """One line: every figure with its interval where they are few, else the figures alone, by verdict."""
    listed = [row for _, row in rows]
    if not listed:
        return "not measured yet"
    if len(listed) <= MOST_IN_A_LINE:
        return "; ".join(f"{_figure(row)}: {row['verdict']}" for row in listed)
    by_verdict: dict[str, list[str]] = {}
    for row in listed:
        by_verdict.setdefault(row["verdict"], []).append(_brief(row))
    return ". ".join(
        f"{verdict} in {len(said)} of {len(listed)}: {'; '.join(said)}" for verdict, said in by_verdict.items()
    )


def _brief(row: dict[str, Any]) -> str:
    """The claim and what was measured, without interval and number of trials."""
    alone = measured_words(row | dict.fromkeys(("ci95", "bootstrap_se", "note"))).rpartition(", ")[0]
    return f"{row['claim']}: {alone or 'nothing'}"


def _figure(row: dict[str, Any]) -> str:
    measured = measured_words(row)
    return f"{row['claim']}: {'nothing' if measured == NONE else measured}"


def _studies(rows: Iterable[tuple[str, dict[str, Any]]]) -> str:
    return ", ".join(dict.fromkeys(name for name, _ in rows)) or NONE


def _section(letter: str, rows: list[tuple[str, dict[str, Any]]]) -> str:
    header = ["claim", "what", "cell", "the post", "measured [95 %]", "verdict"]
    lines = [
        [
            row["claim"],
            row["quantity"].replace("_", " "),
            cell_words(row),
            published_words(row),
            measured_words(row),
            verdict_words(row),
        ]
        for _, row in rows
    ]
    return f"## ({letter}) {escaped(STATEMENTS[letter])}\n\n{grid([header, *lines])}"


def _places(summaries: Summaries) -> str:
    places = dict.fromkeys(place_words(one) for summary in summaries.values() for one in summary["environments"])
    sizes = dict.fromkeys(summary["recipe"]["size"] for summary in summaries.values() if summary.get("recipe"))
    if not places:
        return ""
    return escaped(f"Measured on {' and '.join(places)}, at the size {' and '.join(sizes)}.")


def _advice(summaries: Summaries) -> str:
    """What the figures of other studies say where the post gives advice: a row a use."""
    trained, answered = (_modes(summaries.get(name)) for name in ("post_modes", "post_inference"))
    if not trained and not answered:
        return ""
    uses = [
        ("daily work", trained, _step),
        ("reproducing a paper", trained, _repeats),
        ("competitions", trained, _accuracy),
        ("large data sets", trained, _memory),
        (f"hyper-parameter search, trainings of {SEARCH_STEPS} steps", trained, _search),
        ("real-time inference", answered, _answer),
    ]
    lines = [[use, *(words(cells[mode]) if mode in cells else NONE for mode in MODES)] for use, cells, words in uses]
    return f"## What the advice is about, in figures\n\n{grid([['for', *MODES.values()], *lines])}\n\n{_ADVICE_READ}"


MODES = {(False, False): "(F,F)", (False, True): "(F,T)", (True, False): "(T,F)", (True, True): "(T,T)"}
_ADVICE_READ = (
    "Training figures are those of post_modes, answers those of post_inference. A short training pays for its first "
    "step, where benchmark tunes, as a long one does."
)


def _modes(summary: dict[str, Any] | None) -> dict[tuple[bool, bool], dict[str, Any]]:
    cells = summary["cells"] if summary else []
    return {(one["config"]["cudnn"]["deterministic"], one["config"]["cudnn"]["benchmark"]): one for one in cells}


def _step(cell: dict[str, Any]) -> str:
    ratio = cell["speed"]["ratio_to_baseline"]["value"]
    step = cell["speed"]["step_ms"]
    return NONE if step is None else f"{number(step['mean'])} ms a step, {number(ratio)} of (F,F)'s"


def _repeats(cell: dict[str, Any]) -> str:
    return across_words(cell["reproducibility"])


def _accuracy(cell: dict[str, Any]) -> str:
    figure = cell["metrics"].get("accuracy")
    return NONE if not figure or figure["mean"] is None else f"accuracy {number(100 * figure['mean'])} %"


def _memory(cell: dict[str, Any]) -> str:
    samples = cell["speed"]["samples_per_s"]
    return f"{number(samples)} samples/s, {memory(cell['speed']['peak_memory_bytes'])}"


def _search(cell: dict[str, Any]) -> str:
    speed = cell["speed"]
    if speed["step_ms"] is None or speed["first_step_ms"] is None:
        return NONE
    total_s = (speed["first_step_ms"] + (SEARCH_STEPS - 1) * speed["step_ms"]["mean"]) / 1000
    return f"{number(total_s)} s each, {number(speed['first_step_ms'] / 1000)} s of it the first step"


def _answer(cell: dict[str, Any]) -> str:
    speed = cell["speed"]
    if speed["step_ms"] is None:
        return NONE
    first = number(speed["first_step_ms"] / 1000) if speed["first_step_ms"] else NONE
    return f"{number(speed['step_ms']['mean'])} ms, 99 % within {number(speed['p99_ms'])} ms, the first {first} s"


def _made_by(links: dict[str, str]) -> str:
    listed = "\n".join(f"- [{name}]({link})" for name, link in sorted(links.items()))
    return f"## The studies\n\nEach page has its command, environment, date, table and plots.\n\n{listed}"
