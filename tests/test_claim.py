"""Claims: one owner a folder, whatever the order in which processes look, take and set aside."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.claim import Claim, claim_of
from runner.errors import StudyError


def test_a_folder_is_taken_once_and_says_by_whom(tmp_path: Path) -> None:
    folder = tmp_path / "trial-000"
    assert Claim("a", "me").take(folder)
    assert not Claim("b", "you").take(folder)
    assert claim_of(folder) == Claim("a", "me")
    assert [path.name for path in tmp_path.iterdir()] == ["trial-000"]


def test_a_folder_is_never_seen_without_what_belongs_into_it(tmp_path: Path) -> None:
    folder = tmp_path / "trial-000"

    def fill(aside: Path) -> None:
        assert not folder.exists()
        (aside / "trial.json").touch()

    assert Claim("a", "me").take(folder, fill)
    assert sorted(path.name for path in folder.iterdir()) == ["claim.json", "trial.json"]


def test_a_claim_that_cannot_be_filled_leaves_nothing(tmp_path: Path) -> None:
    def fill(aside: Path) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        Claim("a", "me").take(tmp_path / "trial-000", fill)
    assert list(tmp_path.iterdir()) == []


def test_what_is_set_aside_stays_and_makes_room(tmp_path: Path) -> None:
    folder = tmp_path / "trial-000"
    assert Claim("a", "me").take(folder)
    (folder / "log.txt").write_text("what happened")
    Claim("a", "me").set_aside(folder)
    assert Claim("b", "you").take(folder)
    assert (tmp_path / "trial-000.a" / "log.txt").read_text() == "what happened"


def test_who_comes_too_late_sets_aside_nothing_of_the_winners(tmp_path: Path) -> None:
    folder, dead = tmp_path / "trial-000", Claim("a", "dead")
    assert dead.take(folder)
    dead.set_aside(folder)
    assert Claim("b", "you").take(folder)
    dead.set_aside(folder)
    assert claim_of(folder) == Claim("b", "you")


def test_a_rename_in_the_moment_after_the_look_fails_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, dead = tmp_path / "trial-000", Claim("a", "dead")
    assert dead.take(folder)
    dead.set_aside(folder)
    assert Claim("b", "you").take(folder)
    monkeypatch.setattr("runner.claim.claim_of", lambda folder: dead)  # what was read before the winner came
    monkeypatch.setattr(Path, "exists", lambda path: path == folder)
    with pytest.raises(OSError, match="not empty"):
        dead.set_aside(folder)
    monkeypatch.undo()
    assert claim_of(folder) == Claim("b", "you")


def test_a_folder_that_was_released_is_free(tmp_path: Path) -> None:
    folder = tmp_path / "round-000"
    assert Claim("a", "me").take(folder)
    Claim("a", "me").release(folder)
    assert list(tmp_path.iterdir()) == []
    assert Claim("b", "you").take(folder)
    Claim("a", "me").release(folder)
    assert claim_of(folder) == Claim("b", "you")


RACE = """
import sys
from pathlib import Path
from runner.claim import Claim, claim_of
from runner.errors import StudyError
name, folder = sys.argv[1], Path(sys.argv[2])
sys.stdin.readline()
dead = Claim("dead", "dead")
for number in range(200):
    place = folder / f"trial-{number:03d}"
    if claim_of(place) == dead:
        dead.set_aside(place)
    print(int(Claim(f"{name}-{number}", name).take(place)))
"""


def test_of_several_processes_that_take_over_the_dead_ones_folders_each_gets_its_own(tmp_path: Path) -> None:
    for number in range(200):
        assert Claim("dead", "dead").take(tmp_path / f"trial-{number:03d}")
    command = [sys.executable, "-c", RACE]
    racers = [
        subprocess.Popen([*command, name, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in "abcd"
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    taken = [[int(line) for line in racer.communicate(timeout=600)[0].split()] for racer in racers]
    assert [sum(column) for column in zip(*taken, strict=True)] == [1] * 200
    for number in range(200):
        (winner,) = (name for name, took in zip("abcd", taken, strict=True) if took[number])
        assert claim_of(tmp_path / f"trial-{number:03d}") == Claim(f"{winner}-{number}", winner)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["take", "release", "set_aside"])), max_size=12))
def test_any_order_of_deeds_leaves_at_most_one_owner_who_took_it(deeds: list[tuple[str, str]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        folder, owner = Path(temporary, "trial-000"), None
        for count, (name, deed) in enumerate(deeds):
            claim = claim_of(folder) if deed == "set_aside" else Claim(f"{name}-{count}", name)
            if deed == "take":
                took = claim.take(folder)  # type: ignore[union-attr]
                assert took == (owner is None)
                owner = claim if took else owner
            elif deed == "set_aside" and claim:
                claim.set_aside(folder)
                owner = None
            elif owner and owner.owner == name:
                owner.release(folder)
                owner = None
            assert claim_of(folder) == owner


def test_a_folder_that_is_given_up_in_the_moment_of_the_rename_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = tmp_path / "round-000", Claim("b", "you")
    assert other.take(folder)
    monkeypatch.setattr("runner.claim.claim_of", lambda folder: None)
    assert not Claim("a", "me").take(folder)


def test_a_claim_whose_name_would_lead_out_of_the_study_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "trial-000"
    assert Claim("a", "me").take(folder)
    path = folder / "claim.json"
    path.write_text(path.read_text().replace('"a"', '"../../evil"'))
    with pytest.raises(StudyError, match="which are no names"):
        claim_of(folder)
