"""Watches the steps of the optimizers in the process that trains, and ends the script after the last one asked for.

A step is everything between two steps of one optimizer, the first that was seen: with several (a GAN) it is one round
of all of them. GradScaler.step counts whether or not it skips.
"""

import atexit
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from traceback import walk_stack
from types import FrameType
from typing import Any

import torch
from cudnn_attached.asked import Asked, asked, rank, shared
from cudnn_attached.batches import Batches
from cudnn_attached.losses import Losses
from cudnn_attached.result import environment, write_result
from cudnn_attached.seeds import tell_unseeded, watch_seeds
from cudnn_attached.switches import watch_switches
from cudnn_attached.times import Times
from cudnn_attached.workers import watch_workers
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

PAIR = {"deterministic", "benchmark"}
MOST_STOPS = 3  # how often a script may catch its end and go on


class Stopped(SystemExit):
    """All steps that were asked for are done: nothing went wrong, the script ends here."""


def watch() -> None:
    """Set the flags and look on; called once, when torch has been imported."""
    given = asked()
    assert given
    requested = shared("flags").apply(given.config)
    strict = {"algorithms"} if given.config["determinism"]["algorithms"] else set()
    watch_switches(frozenset(PAIR | strict) if given.hold else frozenset())
    watch_seeds()
    watch_workers()
    Steps(given, {"requested": requested, "before": shared("flags").read()}).watch()


class Steps:
    """What is seen of the steps of this process."""

    def __init__(self, given: Asked, flags: dict[str, Any]):
        self.asked, self.flags, self.process = given, flags, os.getpid()
        self.started_s = time.perf_counter()
        self.records: bool | None = None  # whether this is the process that is recorded; None until its first step
        self.times = Times()
        self.losses = Losses(self.mine, self.times.touched, self.times.backward_done)
        self.batches = Batches(self.looks_at_batches, self.times.touched, self.times.fetched, self.compiles)
        self.optimizers: list[Optimizer] = []
        # The calls at work: an optimizer's, within a scaler's or another's.
        self.stepping: list[tuple[Optimizer, FrameType]] = []
        self.others, self.stops, self.skipped, self.stepped = 0, 0, 0, False
        self.data: list[list[Tensor]] = []
        self.shapes: list[str] = []
        self.weights: dict[str, str] = {}
        self.gradients: dict[str, str] = {}
        self.written = False

    def watch(self) -> None:
        """From now on."""
        register_optimizer_step_pre_hook(lambda optimizer, *_: self.enter(optimizer, sys._getframe(1)))
        register_optimizer_step_post_hook(lambda optimizer, *_: self.leave(optimizer))
        self._watch_scaler()
        self.batches.watch()
        self.losses.watch()
        atexit.register(self.write)
        leave_at_once = os._exit

        def exit_watched(status: int) -> None:
            self.write()
            leave_at_once(status)

        os._exit = exit_watched  # type: ignore[assignment]

    def mine(self) -> bool:
        """Whether this process is to be watched: not if it was forked, nor if another one is recorded."""
        return os.getpid() == self.process and self.records is not False

    def compiles(self) -> None:
        """The script compiles something: what is done here is no part of it, were it the step of an optimizer."""
        self.enter = torch.compiler.disable(self.enter)  # type: ignore[method-assign]
        self.leave = torch.compiler.disable(self.leave)  # type: ignore[method-assign]

    def looks_at_batches(self) -> bool:
        """Within backward() only what was computed before is computed again, as activation checkpointing does."""
        return self.mine() and not self.losses.running

    def _watch_scaler(self) -> None:
        kind: Any = torch.amp.GradScaler
        step = kind.step

        def step_watched(scaler: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            self.enter(optimizer, sys._getframe())
            self.stepped = False
            result = step(scaler, optimizer, *args, **kwargs)
            self.skipped += not self.stepped
            self.leave(optimizer)
            return result

        kind.step = step_watched

    def enter(self, optimizer: Optimizer, call: FrameType) -> None:
        """An optimizer begins to step, or a scaler with it."""
        # What was broken off by an exception that the script has caught is no longer on the stack.
        self.stepping = [one for one in self.stepping if any(one[1] is frame for frame, _ in walk_stack(call))]
        self.stepping.append((optimizer, call))
        if len(self.stepping) > 1 or not self.mine():
            return
        if not self.optimizers:
            self._first(optimizer)
        if all(optimizer is not one for one in self.optimizers):
            self.optimizers.append(optimizer)

    def _first(self, optimizer: Optimizer) -> None:
        """The first step of this process: it is recorded, unless another one is already, or has a lower rank."""
        self.optimizers.append(optimizer)
        parameters = self._parameters()
        self.times.device = parameters[0].device if parameters else torch.device("cpu")
        self.times.touched()
        self.records = rank() == 0 and _claimed(Path(self.asked.folder))
        if self.records:
            begin_s = time.perf_counter()
            tell_unseeded()
            self.initial = shared("digest").digest(_plain(parameters))  # buffers have seen the first batch already
            self.times.paused_s = time.perf_counter() - begin_s

    def leave(self, optimizer: Optimizer) -> None:
        """An optimizer has stepped, or a scaler with it."""
        places = [place for place, (one, _) in enumerate(self.stepping) if one is optimizer]
        if places:  # the innermost; its frame is another one now where the step is compiled
            del self.stepping[places[-1] :]
        self.stepped = True
        if self.stepping or os.getpid() != self.process or not self.optimizers:
            return
        if optimizer is not self.optimizers[0]:
            self.others += 1
            if self.others <= self.asked.steps:
                return
            # The first one is not used any more: another one takes its place.
            self.optimizers.sort(key=lambda one: one is not optimizer)
        self.others = 0
        self._step_done()

    def _step_done(self) -> None:
        """After a step, outside of its span: what is seen of it is kept, and the last one ends the script."""
        self.times.end()
        if self.records:
            self._keep()
        if len(self.times.spans) < self.asked.steps:
            self.times.start()
            return
        self.write(stopped=True)
        self._stop()

    def _keep(self) -> None:
        number, data = len(self.times.spans), _plain(self.batches.take())
        self.shapes.append(";".join(str(tuple(one.shape)) for one in data))
        by_device: dict[torch.device, list[Tensor]] = {}
        for one in data:
            by_device.setdefault(one.device, []).append(one)
        self.data.append([shared("digest").lanes(some) for some in by_device.values()])
        self.losses.step_done()
        if number & (number - 1) == 0:
            gradients = [one.grad for one in self._parameters() if one.grad is not None]
            self.gradients[str(number)] = shared("digest").digest(_plain(gradients))
            self.weights[str(number)] = shared("digest").digest(self._weights())

    def _parameters(self) -> list[Tensor]:
        """What the optimizers train, in their order."""
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        return list({id(one): one for group in groups for one in group["params"]}.values())

    def _weights(self) -> list[Tensor]:
        """What training changes: these, and the buffers of the outermost modules."""
        buffers = [one for module in self.batches.modules for one in module.buffers()]
        return _plain([*self._parameters(), *buffers])

    def _stop(self) -> None:
        self.stops += 1
        if self.stops > MOST_STOPS:  # it catches everything
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit(0)
        if threading.current_thread() is not threading.main_thread():
            import _thread

            _thread.interrupt_main()  # an exit here would end this thread alone
        raise Stopped(0)

    def write(self, stopped: bool = False) -> None:
        """Leave what was seen, once: at the last step, or when the script ends before it."""
        if self.written or not self.records or not self.times.spans or os.getpid() != self.process:
            return
        self.written = True
        now_s, began_s = time.perf_counter(), self.times.spans[0][0].host_s
        digest, weights, losses = shared("digest"), self._weights(), self.losses.read()
        data = [one[0].cpu() if len(one) == 1 else digest.lanes([lane.cpu() for lane in one]) for one in self.data]
        kinds = {shape: index for index, shape in enumerate(dict.fromkeys(self.shapes))}
        found = {
            **self.times.read(),
            "stopped": stopped,
            "skipped": self.skipped,
            "optimizers": len(self.optimizers),
            "loss": losses.tolist(),
            "unseen": self.losses.unseen,
            "shape": [kinds[one] for one in self.shapes],
            "data": [one.tolist() for one in data],
            "sketch": digest.sketch(weights).tolist(),
            "digests": {
                "initial": self.initial,
                "data": digest.text(digest.lanes(data)),
                "losses": digest.digest([losses]),
                "final": digest.digest(weights),
                "steps": self.weights,
            },
            "gradients": self.gradients,
            "flags": self.flags | {"after": shared("flags").read()},
            "environment": environment(self.times.device),
            "build_s": began_s - self.started_s,
            "train_s": now_s - began_s,
        }
        write_result(Path(self.asked.folder), self.times.device, found)


def _claimed(folder: Path) -> bool:
    """Whether this is the first process of the trial that takes a step."""
    with suppress(FileExistsError):
        (folder / "claimed").touch(exist_ok=False)
        return True
    return False


def _plain(tensors: list[Tensor]) -> list[Tensor]:
    """What of this has bits; of a distributed tensor the part that lies here."""
    local = [one.to_local() if hasattr(one, "to_local") else one for one in tensors]
    return [one.detach() for one in local if one.layout is torch.strided and not one.is_meta]
