"""Studies whose processes are killed at random moments and that are continued until they are complete. Needs no pytest.

A record that was seen finished must be there unchanged at the end, every file must be whole at every moment, no process
may stay behind, and the weights must be those of a study that nobody disturbed.
"""

import json
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from launching import SLOW, Started, at_work, done, ended, finals, start
from processes import alive, within

from runner.errors import StudyError
from runner.record import Record
from runner.report import write_report
from runner.study import Study

COMMAND = ["cudnn=default,benchmark", *SLOW, "+model.args.step_s=0.02", "seeds=all", "trials=3", "study=s"]
TRIALS = 6
MARK = "PLANTED_KILLING"
ORPHANS_S = 15.0
# An invocation may have been about to end; without its forkserver, or the child it asks about devices, it cannot begin.
CODES = {"invocation": (-9, 0), "": (0,)}
Finals = dict[tuple[str, int], str]


@dataclass
class Counts:
    """What was seen; all but the first two must be 0. `messages` says what it was, `killed` when it was done."""

    kills: int = 0
    studies: int = 0
    lost: int = 0
    unreadable: int = 0
    orphans: int = 0
    different: int = 0
    unexpected: int = 0
    messages: list[str] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, name: str, message: str = "") -> None:
        """Count one."""
        with self.lock:
            setattr(self, name, getattr(self, name) + 1)
            if message:
                self.messages.append(f"{name}: {message}")

    @property
    def wrong(self) -> int:
        """How much went wrong."""
        return self.lost + self.unreadable + self.orphans + self.different + self.unexpected

    def as_json(self) -> str:
        """One line."""
        names = ("kills", "studies", "lost", "unreadable", "orphans", "different", "unexpected", "messages")
        return json.dumps({name: getattr(self, name) for name in names} | {"killed": dict(sorted(self.killed.items()))})


def undisturbed() -> Finals:
    """The weights that every study must end with."""
    with tempfile.TemporaryDirectory() as temporary:
        code, said = done(*COMMAND, folder=Path(temporary))
        if code:
            raise SystemExit(f"the undisturbed study failed: {said}")
        return finals(Study(Path(temporary, "s")))


def killed_studies(kills: int, parallel: int, seed: int, folder: Path, minutes: float = float("inf")) -> Counts:
    """Do studies, killed at random, until so many kills have been done; none is begun after so many minutes."""
    counts, deadline = Counts(), time.monotonic() + 60 * minutes
    expected = undisturbed()

    def work(worker: int) -> None:
        rng, number = random.Random(f"{seed}/{worker}"), 0
        while counts.kills < kills and time.monotonic() < deadline:
            place = folder / f"{worker}-{number}"
            place.mkdir(parents=True)
            one_study(place, rng, kills, counts, expected)
            print(counts.as_json(), flush=True)  # so that what was seen is kept if this is broken off
            number += 1

    with ThreadPoolExecutor(parallel) as pool:
        for one in [pool.submit(work, worker) for worker in range(parallel)]:
            one.result()
    return counts


def one_study(place: Path, rng: random.Random, kills: int, counts: Counts, expected: Finals) -> None:
    """One study, killed and continued until it is complete."""
    study, seen = Study(place / "s"), dict[Path, bytes]()
    alone = 0
    while alone < 3:
        process = start(*COMMAND, folder=place, **{MARK: str(place)})
        with watched(study, seen, counts):
            killed = counts.kills < kills and kill_one(process, study, rng)
            code, said = ended(process)
        if killed:
            counts.add("kills")
            counts.killed[f"{killed} with {count(study)} records"] += 1
        alone += not killed
        if not within(ORPHANS_S, lambda: not marked(str(place))):
            counts.add("orphans", f"{place}: {marked(str(place))}")
        if "Traceback" in said or code not in CODES.get(killed, (0, 1, 2)):
            counts.add("unexpected", f"{place}: exit code {code} after killing {killed or 'nothing'}: {said}")
        report(study, counts)
        if code == 0 and not killed:
            break
    check(study, seen, counts, expected)


def kill_one(process: Started, study: Study, rng: random.Random) -> str:
    """Kill one of the processes at a random moment; what was killed, "" if it had ended before."""
    there = count(study)
    if there == TRIALS and rng.random() < 0.7:
        return ""  # only its report is left
    if there == TRIALS or rng.random() < 0.3:
        time.sleep(rng.uniform(0, 6))
    else:
        wanted = there + rng.randint(0, TRIALS - 1 - there)
        within(60, lambda: process.poll() is not None or (count(study) >= wanted and bool(at_work(study.folder))))
        time.sleep(rng.uniform(0, 0.5))
    what = rng.choices(["invocation", "forkserver", "trial"], [70, 15, 15])[0]
    target = found(process, what)
    if process.poll() is not None or target is None:
        return ""
    with suppress(psutil.NoSuchProcess):
        target.send_signal(signal.SIGKILL)
        return what
    return ""


def count(study: Study) -> int:
    """How many trials have a record."""
    return len(list(study.folder.glob("cells/*/trial-???/record.json")))


def found(process: Started, what: str) -> psutil.Process | None:
    """The invocation itself, its forkserver, or that one's child; None if there is none at this moment."""
    with suppress(psutil.NoSuchProcess):
        invocation = psutil.Process(process.pid)
        if what == "invocation":
            return invocation
        servers = [child for child in invocation.children() if "server.serve" in " ".join(child.cmdline())]
        among = servers if what == "forkserver" else [child for server in servers for child in server.children()]
        return among[0] if among else None
    return None


@contextmanager
def watched(study: Study, seen: dict[Path, bytes], counts: Counts) -> Iterator[None]:
    """Look at all records all the time; keep those that have finished."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            look(study, seen, counts)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        look(study, seen, counts)


def look(study: Study, seen: dict[Path, bytes], counts: Counts) -> None:
    """Read every record that is there."""
    for path in study.folder.glob("cells/*/trial-???/record.json"):
        try:
            content = path.read_bytes()
            fine = path in seen or Record.read(path).complete
        except FileNotFoundError:
            continue
        except StudyError as error:
            if path.exists():  # else it was set aside in this moment
                counts.add("unreadable", str(error))
            continue
        if fine and seen.setdefault(path, content) != content:
            counts.add("lost", f"{path}: a finished record has changed")
            seen[path] = content


def report(study: Study, counts: Counts) -> None:
    """Every study that is there has a report, whatever has happened to it."""
    if not (study.folder / "study.json").exists():
        return
    try:
        damaged = write_report(study)["damaged"]
    except (StudyError, OSError) as error:
        damaged = [str(error)]
    for message in damaged:
        counts.add("unreadable", message)


def check(study: Study, seen: dict[Path, bytes], counts: Counts, expected: Finals) -> None:
    """A study at its end."""
    if finals(study) == expected:
        counts.add("studies")
    else:
        counts.add("different", f"{study.folder}: {finals(study)}")
    for path, content in seen.items():
        if not path.is_file() or path.read_bytes() != content:
            counts.add("lost", f"{path}: a finished record is not there unchanged")


def marked(mark: str) -> list[int]:
    """The living processes with this variable: whatever a study in this folder has started."""
    pids, needle = [], f"{MARK}={mark}\0".encode()
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdigit() and needle in Path("/proc", name, "environ").read_bytes() and alive(int(name)):
                pids.append(int(name))
    return pids
