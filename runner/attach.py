"""`python -m runner.attach [WORDS] -- COMMAND`: the modes measured on a training script as it is.

WORDS are the runner's own, as `steps=100 trials=5 'cudnn=glob(*)' study=FOLDER`; COMMAND is what starts the script, for
instance `python train.py --lr 0.1`. See docs/attach.md.
"""

import json
import os
import re
import shutil
import sys

from runner.expand import quoted
from runner.schema_attach import KEPT

REFUSED = 2
SEPARATOR = "--"
# What concerns a study and not what is trained: the script decides everything else.
OURS = (
    *("cudnn", "determinism", "attach.hold", "trials", "study", "retry", "device", "exclusive", "threads", "timeout"),
    *("budget", "plan", "tracking", "train.steps", "hydra"),
)
SHORT = {"steps": "train.steps"}
# Hydra's options that take the next word.
TAKING = (
    *("--config-dir", "-cd", "--config-path", "-cp", "--config-name", "-cn"),
    *("--cfg", "-c", "--package", "-p", "--info"),
)


def main() -> None:
    """Start the study, or say in one line why that cannot be; Hydra ends the process with the study's exit code."""
    words, command = split(sys.argv[1:])
    if SEPARATOR not in sys.argv and {"-h", "--help"} & {*words}:
        print(__doc__)
        return
    wrong = refused(words, command)
    if wrong:
        print(f"error: {wrong}", file=sys.stderr)
        sys.exit(REFUSED)
    sys.argv[1:] = asked(words, command)
    # Trials of ours have no use for them, and they change in this process: the script gets them as they are now.
    os.environ[KEPT] = json.dumps({name: value for name, value in os.environ.items() if name.startswith("MLFLOW_")})
    from runner.__main__ import main as study

    study()


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The runner's own words, and those of the command, which come after the first `--`."""
    place = arguments.index(SEPARATOR) if SEPARATOR in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]


def refused(words: list[str], command: list[str]) -> str:
    """Why this cannot be asked, "" if it can."""
    if not command:
        return "no command; give it after --, for instance: python -m runner.attach -- python train.py --lr 0.1"
    if shutil.which(command[0]) is None:
        return f"{command[0] or repr('')}: {_no_command(command[0])}"
    for word in _in_order(words)[1]:
        key = _key(word)
        if "=" not in word:
            return f"{word}: is no word of a study; give KEY=VALUE before {SEPARATOR}, for instance steps=100"
        if "=" in word and not any(key == one or key.startswith((f"{one}.", f"{one}/")) for one in (*OURS, *SHORT)):
            return f"{key}: is up to the script that is attached to; what can be said here is {', '.join(OURS)}, steps"
    return ""


def _no_command(name: str) -> str:
    """Why this starts nothing, and what to do."""
    if os.path.isdir(name):
        return "is a folder; give the command that starts the script, as python train.py"
    if os.path.isfile(name):
        return f"is no file that may be executed; say what runs it, as python {name} or bash {name}, or use chmod +x"
    return "there is no such command; give one that starts from here, as python train.py"


def _in_order(words: list[str]) -> tuple[list[str], list[str]]:
    """Hydra's options, each with what belongs to it, and the other words: it takes these in one row only."""
    options: list[str] = []
    others: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        belongs = before in TAKING and "=" not in word
        (options if belongs or word.startswith("-") else others).append(word)
    return options, others


def asked(words: list[str], command: list[str]) -> list[str]:
    """The same as the words of `python -m runner`."""
    options, others = _in_order(words)
    own = [f"{SHORT[_key(word)]}={word.partition('=')[2]}" if _key(word) in SHORT else word for word in others]
    multirun = [] if {"-m", "--multirun"} & {*options} else ["-m"]
    quotes = ",".join(quoted(literal(word)) for word in command)
    return [*multirun, *options, *own, "phase=attach", "precision=default", f"attach.command=[{quotes}]"]


def literal(word: str) -> str:
    """A word in which "${" is no reference to a setting: the settings are resolved twice on their way to the trial."""
    return re.sub(r"(\\*)\$\{", lambda found: "\\" * (4 * len(found[1]) + 3) + "${", word)


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~") if "=" in word else ""


if __name__ == "__main__":
    main()
