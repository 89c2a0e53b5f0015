"""A study survives any kill: continued, it is complete and its weights are those of an undisturbed one."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from killing import killed_studies


def test_a_study_survives_kills_at_random_moments(tmp_path: Path) -> None:
    seed = int(os.environ.get("KILL_SEED") or random.randrange(10**6))
    print(f"KILL_SEED={seed}")
    counts = killed_studies(20, 2, seed, tmp_path)  # scripts/kill_study.py does more
    assert counts.wrong == 0, counts.messages
    assert counts.kills >= 20 and counts.studies >= 2


@pytest.mark.slow
def test_the_script_for_many_kills_prints_counts(tmp_path: Path) -> None:
    script = Path(__file__).resolve().parents[2] / "scripts" / "kill_study.py"
    command = [sys.executable, str(script), "--kills", "1", "--parallel", "1", "--seed", "3"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout)
    assert counts["kills"] == 1 and counts["studies"] >= 1 and counts["lost"] == 0
