"""What a study is about, in one line."""

from pathlib import Path

from factory import Plant, make_cell, make_study

from runner.analysis.summary import summarise
from runner.report.headline import headline


def test_a_users_own_model_and_data_are_named(tmp_path: Path) -> None:
    own = {"name": "custom", "args": {}}
    cell = make_cell(model=own | {"_target_": "mine.Net"}, dataset=own | {"_target_": "mine.data", "view": "image"})
    study = make_study(tmp_path / "study", [(cell, Plant())], rounds=1)
    assert headline(summarise(study)).startswith("mine.Net on mine.data, precision ")
