"""What a user's own model and data set may bring, and what is made of it; docs/own-model.md shows it by examples.

A **model** (`model._target_`) is an nn.Module, called as `model(inputs)`. In the views image, mask, sequence, next and
forecast its outputs have the shape of runner.worker.task; a dict with the key "out" stands for that entry. In the view
custom inputs, targets and outputs may be any nesting of lists, tuples and dicts of tensors, and the loss comes from the
first or the second of these; the others may be there in every view.

| brought                            | by               | is                                                       |
|------------------------------------|------------------|----------------------------------------------------------|
| `forward(inputs, targets)`         | the model        | in training the loss, or a dict of losses to be added    |
| `loss(outputs, targets)`           | one of the two   | the loss, in place of the view's                         |
| `metrics(outputs, targets)`        | either or both   | numbers by name, means over the samples of a batch       |
| `predictions(outputs)`             | one of the two   | a tensor of what trials may disagree in                  |
| `make_scheduler(optimizer, steps)` | the model        | something with step(), called after each training step   |
| `collate_fn(items)`                | the training set | a batch (inputs, targets), of training and of test items |

"The two" are the model and the training set: a method, or an attribute that can be called. A loss is a floating-point
tensor of one element with a gradient; outputs are what `model(inputs)` gave, as it gave it. What is brought is checked
on the first batch.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from runner.data.data import CUSTOM
from runner.data.nested import described, tensors
from runner.data.rng import untouched
from runner.errors import Refusal
from runner.target import blaming
from runner.worker.digest import lanes
from runner.worker.hooks import uncompiled
from runner.worker.task import METRICS, check_outputs, check_targets, main_output, objective, predicted

Numbers = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """What is made of a model's outputs: a loss, figures, predictions. A user's own stand in `own_`, None without.

    takes_targets: the model's forward is given the targets in training, and gives its loss.
    """

    view: str
    classes: int = 0
    own_loss: Callable[[Any, Any], Tensor] | None = None
    own_metrics: tuple[Callable[[Any, Any], Numbers], ...] = ()
    own_predictions: Callable[[Any], Tensor] | None = None
    own_scheduler: Callable[[Optimizer, int], Any] | None = None
    takes_targets: bool = False

    def forward(self, model: nn.Module, inputs: Any, targets: Any) -> Any:
        """What the model gives in training."""
        return model(inputs, targets) if self.takes_targets else model(inputs)

    def loss(self, outputs: Any, targets: Any) -> Tensor:
        """The loss of a batch."""
        if self.takes_targets:
            return sum(outputs.values()) if isinstance(outputs, Mapping) else outputs  # type: ignore[return-value]
        if self.own_loss:
            return self.own_loss(outputs, targets)
        return objective(self.view, main_output(outputs), targets)

    def check_data(self, targets: Any) -> None:
        """Refuse targets that do not fit the view. Waits for the device."""
        if self.view != CUSTOM:
            check_targets(self.view, targets, self.classes)

    def first_loss(self, outputs: Any, targets: Any) -> Tensor:
        """The loss of the first batch. Raises Refusal for outputs or a loss that cannot be used; it does not wait."""
        if self.view != CUSTOM:
            check_outputs(self.view, main_output(outputs), targets, self.classes)
        if not self.takes_targets and not self.own_loss:
            return self.loss(outputs, targets)
        with blaming(f"the loss of outputs {described(outputs)} and targets {described(targets)}"):
            loss = self.loss(outputs, targets)
        if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.is_floating_point():
            raise Refusal(f"the loss is {_what(loss)}: a floating-point tensor of one element is needed")
        if torch.is_grad_enabled() and not loss.requires_grad:
            raise Refusal(f"the loss is {_what(loss)} without a gradient: no weight would learn from it")
        return loss

    def answer_loss(self, outputs: Any, targets: Any, first: bool) -> Tensor:
        """The loss of a batch that is only answered; 0 where the model makes its loss itself, in training alone."""
        if self.takes_targets:
            return torch.zeros(())
        return (self.first_loss(outputs, targets) if first else self.loss(outputs, targets)).reshape(())

    def check_metrics(self, outputs: Any, targets: Any) -> None:
        """Refuse a user's metrics that are no numbers by name; outputs that are losses tell nothing of them."""
        if not self.takes_targets:
            with torch.no_grad(), untouched():
                self.metrics(outputs, targets)

    @torch.no_grad()
    def metrics(self, outputs: Any, targets: Any) -> dict[str, Tensor]:
        """A user's own figures of a batch by name, scalars; the loss among them where it is a user's own."""
        found: dict[str, Tensor] = {}
        for own in self.own_metrics:
            with blaming(f"metrics of outputs {described(outputs)} and targets {described(targets)}"):
                values = own(outputs, targets)
            if not isinstance(values, Mapping):
                raise Refusal(f"metrics give {_what(values)}: numbers by name are needed")
            for name, value in values.items():
                self._check_name(name, found)
                found[name] = _number(name, value)
        if self.own_loss:
            found["loss"] = self.own_loss(outputs, targets).detach().reshape(())
        return found

    def _check_name(self, name: Any, found: Numbers) -> None:
        if not isinstance(name, str) or not name:
            raise Refusal(f"metrics name {name!r}: a name is a text")
        if name in found:
            raise Refusal(f"metrics name {name!r}, and so do the model and the training set both; rename one")
        if name in METRICS.get(self.view, ("loss",)):
            raise Refusal(f"metrics name {name!r}, which is measured anyway in the view {self.view}; rename it")

    @torch.no_grad()
    def predictions(self, outputs: Any) -> Tensor:
        """What counts as predicted, (n,): int32 or float32. Where nothing does, two words that stand for all bits."""
        # Copies: outputs may be what a CUDA graph overwrites with the next batch.
        if self.own_predictions:
            with blaming(f"predictions of outputs {described(outputs)}"):
                own = self.own_predictions(outputs)
            if not isinstance(own, Tensor):
                raise Refusal(f"predictions give {_what(own)}: a tensor is needed")
            return (own.float() if own.is_floating_point() else own.int()).flatten().clone()
        if self.view == CUSTOM:
            return lanes(tensors(outputs))
        return predicted(self.view, main_output(outputs)).clone()

    @property
    def predicts(self) -> bool:
        """Whether anything counts as predicted."""
        return self.view != CUSTOM or self.own_predictions is not None


class OwnFigures:
    """A user's own figures over a whole evaluation set: means over its samples, in float64."""

    def __init__(self, task: Task):
        self._task, self._samples = task, 0
        self._sums: dict[str, Tensor] = {}

    def update(self, outputs: Any, targets: Any, samples: int) -> None:
        """Count in one batch of so many samples."""
        figures = self._task.metrics(outputs, targets)
        if self._sums and figures.keys() != self._sums.keys():
            raise Refusal(f"metrics name {', '.join(figures)}, and {', '.join(self._sums)} for another batch")
        for name, value in figures.items():
            self._sums[name] = self._sums.get(name, 0) + value.double() * samples
        self._samples += samples

    def compute(self) -> dict[str, float]:
        """The figures by name."""
        return {name: float(total) / self._samples for name, total in self._sums.items()}


def task_of(model: nn.Module, view: str, classes: int, brought: Any = None) -> Task:
    """What this model brings, and `brought`, a user's own training set.

    Raises Refusal where that is not enough, or not clear which of two counts.
    """
    model = uncompiled(model)
    takes_targets = view == CUSTOM and "targets" in _parameters(model.forward)
    loss = _one("loss", model, brought)
    if view == CUSTOM and loss is None and not takes_targets:
        raise Refusal(
            f"dataset.view={CUSTOM}: nothing gives a loss: neither {type(model).__name__} nor the training set has "
            "loss(outputs, targets), and the model's forward has no parameter `targets`"
        )
    if takes_targets and loss is not None:
        raise Refusal("the model's forward takes targets and so gives the loss, and there is a `loss` too; leave one")
    return Task(
        view=view,
        classes=classes,
        own_loss=loss,
        own_metrics=tuple(filter(None, (_callable(one, "metrics") for one in (model, brought)))),
        own_predictions=_one("predictions", model, brought),
        own_scheduler=_callable(model, "make_scheduler"),
        takes_targets=takes_targets,
    )


def _one(name: str, model: nn.Module, brought: Any) -> Callable[..., Any] | None:
    found = [own for own in (_callable(one, name) for one in (model, brought)) if own]
    if len(found) > 1:
        raise Refusal(f"the model and the training set both have `{name}`: which counts is not clear; leave one")
    return found[0] if found else None


def _callable(owner: Any, name: str) -> Callable[..., Any] | None:
    found = getattr(owner, name, None)
    return found if callable(found) else None


def _parameters(function: Any) -> Mapping[str, Any]:
    try:
        return inspect.signature(function).parameters
    except ValueError:  # TorchScript's have none
        return {}


def _number(name: str, value: Any) -> Tensor:
    """A figure as a float64 scalar."""
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_complex():
        return value.detach().reshape(()).double()
    if isinstance(value, bool | int | float):
        return torch.tensor(float(value), dtype=torch.float64)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # NumPy's
        return torch.tensor(float(value), dtype=torch.float64)
    raise Refusal(f"metrics give {_what(value)} for {name!r}: a number is needed")


def _what(value: Any) -> str:
    return described(value) if isinstance(value, Tensor | Mapping | list | tuple) else f"a {type(value).__name__}"
