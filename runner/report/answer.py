"""The answers of a study in words: which mode for what, or what would settle it."""

from collections import Counter
from typing import Any

from runner.analysis.words import plan_words
from runner.report.sizes import sizes_words
from runner.report.words import change_words, completeness_words, phase_of


def opening(summary: dict[str, Any]) -> list[str]:
    """What stands above everything else: the price of changing sizes, what is missing, the answers."""
    return [*sizes_words(summary), *completeness_words(summary), *answers(summary)]


def sentence(summary: dict[str, Any]) -> str:
    """The answers in a sentence for whoever reads no further; of several settings in how many each mode wins."""
    found, questions = summary["recommendations"], list(summary["recommendation"])
    reasons = {one["fastest"]["undecided"] if _unranked(one, questions) else None for one in found}
    if len(reasons) == 1 and None not in reasons:
        return f"No ranking: {reasons.pop()}."
    if len(found) > 1:
        fast, same = _counted("fastest", found), _counted("reproducible", found)
        return f"Fastest: {fast}. Fastest of those that repeat bit by bit: {same}."
    fastest, repeating = found[0]["fastest"], found[0]["reproducible"]
    if "label" in fastest and fastest["label"] == repeating.get("label"):
        return f"Fastest is {_named(fastest, summary)}, and it repeats bit by bit."
    fast = f"Fastest is {_named(fastest, summary)}" if "label" in fastest else "Which mode is fastest is undecided"
    same = f"the fastest that repeats bit by bit is {_named(repeating, summary)}" if "label" in repeating else ""
    return f"{fast}; {same or 'which one to take where results must repeat is undecided'}."


def _counted(question: str, found: list[dict[str, Any]]) -> str:
    """How often each mode is the answer, without what else its label says."""
    modes = Counter(one[question].get("label", "undecided").split(", ")[0] for one in found)
    if len(modes) == 1:
        return f"{next(iter(modes))} in all {len(found)} settings"
    (first, count), *others = modes.most_common()
    return ", ".join([f"{first} in {count} of {len(found)} settings", *(f"{mode} in {n}" for mode, n in others)])


def _named(answer: dict[str, Any], summary: dict[str, Any]) -> str:
    """The mode, and how its step time compares with the default's, if it is told apart."""
    cell = next(one for one in summary["cells"] if one["label"] == answer["label"])
    ratio = cell["speed"]["ratio_to_baseline"]
    told = ratio["verdict"] in ("faster", "slower") and not ratio["baseline"]
    beside = f", {change_words(ratio['value'])} than default (F,F)" if told else ""
    return f"{answer['label']}{beside}"


def answers(summary: dict[str, Any]) -> list[str]:
    """A line a question, or one line where one reason speaks against them all. Settings are told apart.

    An answer says what it is for; where there is none but questions are open, a line above them says it.
    """
    questions = list(summary["recommendation"])
    settings = _settings(summary)
    lines = [prefix + line for prefix, found in settings for line in _lines(found, questions)]
    answered = any("undecided" not in found[name] for _, found in settings for name in questions)
    open_ = any(not _unranked(found, questions) for _, found in settings)
    return [plan_line(summary), *lines] if open_ and not answered else lines


def plan_line(summary: dict[str, Any]) -> str:
    """What answers would be for."""
    phases = {phase_of(cell) for cell in summary["cells"]}
    phase = phases.pop() if len(phases) == 1 else "train"
    words = plan_words(summary["plan"]["steps"], summary["plan"]["runs"], phase)
    return f"for {words} (plan.steps, plan.runs):"


def answer_to(question: str, summary: dict[str, Any]) -> str:
    """The answer to one question, for every setting."""
    return "; ".join(prefix + _words(found[question]) for prefix, found in _settings(summary))


def _settings(summary: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Each recommendation after the words that tell it apart: none if there is one only."""
    found = summary["recommendations"]
    return [(f"{one['settings'] or 'all else equal'}: " if len(found) > 1 else "", one) for one in found]


def _unranked(found: dict[str, Any], questions: list[str]) -> bool:
    """Whether one reason speaks against an answer to any of the questions."""
    return all(found[name] == found[questions[0]] and "undecided" in found[name] for name in questions)


def _lines(found: dict[str, Any], questions: list[str]) -> list[str]:
    if _unranked(found, questions):
        return [f"no ranking: {found[questions[0]]['undecided']}"]
    return [f"{name}: {_words(found[name])}" for name in questions]


def _words(answer: dict[str, Any]) -> str:
    if "undecided" in answer:
        return f"undecided: {answer['undecided']}"
    return f"{answer['label']} ({answer['why']})"
