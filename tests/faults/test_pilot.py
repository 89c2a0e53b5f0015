"""The pilot trial before a study: broken off it leaves nothing, and on several cards there is one only."""

import signal
from pathlib import Path

from launching import PLAIN, TESTS, TINY, done, ended, start
from processes import gone, within

TWELVE = ["cudnn=glob(*)", "trials=3", "study=s"]


def test_ctrl_c_in_the_pilot_ends_the_study_before_it_exists(tmp_path: Path) -> None:
    pid, temporary = tmp_path / "pid", tmp_path / "temporary"
    temporary.mkdir()
    hangs = ["model._target_=planted_share.Hangs", f"+model.args.path={pid}"]
    process = start(*TWELVE, *TINY, *hangs, folder=tmp_path, TMPDIR=str(temporary))
    assert within(600, lambda: pid.exists() and pid.read_text() != "")
    process.send_signal(signal.SIGINT)
    code, said = ended(process)
    assert code == 130 and "Traceback" not in said and "study /" not in said, said
    assert gone([int(pid.read_text())])
    assert {path.name for path in tmp_path.iterdir()} == {"pid", "temporary"}
    assert list(temporary.glob("cudnn-mode-runner-*")) == []


def test_on_several_cards_the_invocation_that_was_called_estimates_alone(tmp_path: Path) -> None:
    words = ["cudnn=glob(*)", *PLAIN, "device=all", "trials=4", "study=s"]
    code, said = done(*words, folder=tmp_path, paths=(TESTS / "simulated",))
    assert code == 0 and said.count("pilot trial") == 2 and "to go\n" in said, said
    cards = list((tmp_path / "s" / "hydra").glob("*_cards/*.txt"))
    assert len(cards) == 4 and not any("pilot" in path.read_text() for path in cards)
