"""The answers of a study in words: which mode for what, or what would settle it."""

from typing import Any


def answers(summary: dict[str, Any]) -> list[str]:
    """A line a question, or one line where no question has an answer. Several settings are told apart."""
    # "balanced" has no answer before plans are counted; a line that never says anything is left out.
    questions = [name for name in summary["recommendation"] if name != "balanced"]
    return [prefix + line for prefix, found in _settings(summary) for line in _lines(found, questions)]


def answer_to(question: str, summary: dict[str, Any]) -> str:
    """The answer to one question, for every setting."""
    return "; ".join(prefix + _words(found[question]) for prefix, found in _settings(summary))


def _settings(summary: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Each recommendation after the words that tell it apart: none if there is one only."""
    found = summary["recommendations"]
    return [(f"{one['settings'] or 'all else equal'}: " if len(found) > 1 else "", one) for one in found]


def _lines(found: dict[str, Any], questions: list[str]) -> list[str]:
    if all(found[name] == found[questions[0]] for name in questions):
        return [f"no ranking: {found[questions[0]]['undecided']}"]
    return [f"{name}: {_words(found[name])}" for name in questions]


def _words(answer: dict[str, Any]) -> str:
    if "undecided" in answer:
        return f"undecided: {answer['undecided']}"
    return f"{answer['label']} ({answer['why']})"
