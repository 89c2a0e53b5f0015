"""The answers of a study in words: which mode for what, or what would settle it."""

from typing import Any

from runner.analysis.words import plan_words
from runner.report.sizes import sizes_words
from runner.report.words import completeness_words, phase_of


def opening(summary: dict[str, Any]) -> list[str]:
    """What stands above everything else: the price of changing sizes, what is missing, the answers."""
    return [*sizes_words(summary), *completeness_words(summary), *answers(summary)]


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
    phase = "infer" if {phase_of(cell) for cell in summary["cells"]} == {"infer"} else "train"
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
