"""The reference of the code: a page for each module, the command that README.md shows for it."""

import subprocess
import sys
from pathlib import Path

import pytest
from documented import ROOT


@pytest.mark.slow
def test_each_part_has_its_page(tmp_path: Path) -> None:
    pytest.importorskip("pdoc", reason="needs pip install -e '.[docs]'")
    command = [sys.executable, "scripts/api_reference.py", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "index.html") and (tmp_path / "index.html").is_file()
    assert "module specification" not in done.stderr  # pdoc's words for what is found twice or not at all
    for name in ("study", "analysis/ratio", "worker/train", "models/resnet", "hook"):
        assert (tmp_path / "runner" / f"{name}.html").is_file()
    assert not list(tmp_path.rglob("*__main__*"))
