"""The answers of a study in words: which mode for what, or what would settle it."""

from collections import Counter
from typing import Any

from runner.analysis.words import plan_words
from runner.report.sizes import sizes_words
from runner.report.words import change_words, completeness_words, left_out_words, phase_of, repeats_words


def opening(summary: dict[str, Any]) -> list[str]:
    """What stands above everything else: the price of changing sizes, what is missing, the answers."""
    said = _all_uncompared(summary) and not _measured(summary["cells"])
    left_out = [] if said else left_out_words(summary)
    return [*sizes_words(summary), *completeness_words(summary), *left_out, *answers(summary)]


def sentence(summary: dict[str, Any]) -> str:
    """The answers in a sentence for whoever reads no further; of several settings in how many each mode wins."""
    found, questions = summary["recommendations"], list(summary["recommendation"])
    reasons = {one["fastest"]["undecided"] if _unranked(one, questions) else None for one in found}
    if len(reasons) == 1 and None not in reasons:
        return f"No ranking: {reasons.pop()}."
    if _all_uncompared(summary):
        said = repeats_words(summary["cells"], lambda label: label if len(found) == 1 else label.split(", ")[0])
        return f"{said[0].upper()}{said[1:]}. {_silence(summary['cells']).capitalize()}."
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

    An answer says what it is for; where there is none but questions are open, a line above them says it. Where there is
    nothing to say of speed, what repeats is the answer; one reason for it in all settings is one line at the end.
    """
    questions, why = list(summary["recommendation"]), _all_uncompared(summary)
    once = list(why) if len(why) == 1 else []
    each = [(prefix, found, _lines(found, summary, once)) for prefix, found in _settings(summary)]
    answered = any("undecided" not in found[name] for _, found, _ in each for name in questions)
    same = [line for line in each[0][2] if all(line in lines for *_, lines in each)] if each and not answered else []
    own = [prefix + line for prefix, _, lines in each for line in lines if line not in same]
    open_ = any(not (_unranked(found, questions) or _uncompared(found, summary)) for _, found, _ in each)
    return [*([plan_line(summary)] if open_ and not answered else []), *same, *own, *once]


def plan_line(summary: dict[str, Any]) -> str:
    """What answers would be for."""
    phases = {phase_of(cell) for cell in summary["cells"]}
    phase = phases.pop() if len(phases) == 1 else "train"
    words = plan_words(summary["plan"]["steps"], summary["plan"]["runs"], phase)
    return f"for {words} (plan.steps, plan.runs):"


def answer_to(question: str, summary: dict[str, Any]) -> str:
    """The answer to one question, for every setting; once where one reason speaks against it in all."""
    settings = _settings(summary)
    reasons = {found[question].get("undecided") for _, found in settings}
    if len(reasons) == 1 and None not in reasons:
        return _words(question, settings[0][1])
    return "; ".join(prefix + _words(question, found) for prefix, found in settings)


def _settings(summary: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Each recommendation after the words that tell it apart: none if there is one only, whose labels say them then."""
    found = summary["recommendations"]
    if len(found) == 1:
        return [("", found[0] | {"settings": ""})]
    return [(f"{one['settings'] or 'all else equal'}: ", one) for one in found]


def _unranked(found: dict[str, Any], questions: list[str]) -> bool:
    """Whether one reason speaks against an answer to any of the questions."""
    return all(found[name] == found[questions[0]] and "undecided" in found[name] for name in questions)


def _uncompared(found: dict[str, Any], summary: dict[str, Any]) -> str | None:
    """That and why there is nothing to say of the speed of these cells: none is measured, or one alone; else None."""
    cells, fastest = [cell for cell in _cells(found, summary) if cell["n"]], found["fastest"]
    speechless = len(cells) == 1 or (cells and not _measured(cells))
    if not speechless or fastest != found["balanced"] or "undecided" not in fastest:
        return None
    return f"{_silence(cells)}: {fastest['undecided']}"


def _all_uncompared(summary: dict[str, Any]) -> set[str]:
    """That and why there is nothing to say of the speed of any cells; empty where there is of some."""
    questions = list(summary["recommendation"])
    ranked = [found for found in summary["recommendations"] if not _unranked(found, questions)]
    reasons = {_uncompared(found, summary) for found in ranked}
    return set() if None in reasons else {why for why in reasons if why}


def _measured(cells: list[dict[str, Any]]) -> bool:
    return any(cell["speed"]["step_ms"] for cell in cells)


def _silence(cells: list[dict[str, Any]]) -> str:
    return f"speed was not {'compared' if _measured(cells) else 'measured'}"


def _cells(found: dict[str, Any], summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that a recommendation is about: those of its ids that its settings are of."""
    settings = set(filter(None, found["settings"].split(", ")))
    cells = [cell for cell in summary["cells"] if cell["cell"] in found["cells"]]
    return [cell for cell in cells if settings <= set(cell["label"].split(", "))]


def _lines(found: dict[str, Any], summary: dict[str, Any], once: list[str]) -> list[str]:
    """A line a question; `once` is what is said elsewhere, for all settings."""
    questions = list(summary["recommendation"])
    if _unranked(found, questions):
        return [f"no ranking: {found[questions[0]]['undecided']}"]
    if why := _uncompared(found, summary):
        cells, label = _cells(found, summary), found["reproducible"].get("label")
        repeats = "; ".join([repeats_words(cells, lambda one: _short(one, found)), *({why} - {*once})])
        answer = _words("reproducible", found) if _measured(cells) else _short(label or "", found)
        return [repeats, f"reproducible: {answer}"] if label else [repeats]
    if found["fastest"] == found["balanced"] and "undecided" in found["fastest"]:
        return [f"fastest, balanced: {_words('fastest', found)}", f"reproducible: {_words('reproducible', found)}"]
    return [f"{name}: {_words(name, found)}" for name in questions]


def _words(question: str, found: dict[str, Any]) -> str:
    answer = found[question]
    said = f"undecided: {answer['undecided']}" if "undecided" in answer else f"{answer['label']} ({answer['why']})"
    return _short(said, found)


def _short(text: str, found: dict[str, Any]) -> str:
    """Without the settings after each mode: what the text is about has them already."""
    return text.replace(f", {found['settings']}", "") if found["settings"] else text
