"""Logs: their end is the error."""

from pathlib import Path

from runner.log import end_of


def test_the_end_of_a_log_is_its_last_characters(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("ä" * 3000 + "the error\n")
    assert end_of(tmp_path / "log.txt", size=14) == "äääääthe error"
    assert end_of(tmp_path / "nowhere") == ""


def test_the_end_of_a_crash_is_the_error_not_the_list_of_modules(tmp_path: Path) -> None:
    modules = ", ".join(f"package.module_{number}" for number in range(300))
    (tmp_path / "log.txt").write_text(f"Fatal Python error: Aborted\n\nExtension modules: {modules} (total: 300)\n")
    assert end_of(tmp_path / "log.txt") == "Fatal Python error: Aborted"


def test_a_long_log_is_not_read_as_a_whole_and_may_begin_within_a_character(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes("ä".encode() * 1000 + b"x")
    assert end_of(tmp_path / "log.txt", size=10) == "äääääääääx"
