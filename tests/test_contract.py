"""What a user's own model and data set bring: it counts, and what cannot be used is told in one line."""

from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from brought import Bad, NestedPlain, PackedLstm, Smoothed, nested, sequences
from composed import planted_config
from data_files import settings as data_settings
from planted import Plain, plain_data
from summaries import make_summary
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence
from traced import trial_of

from runner.analysis.traces import compare
from runner.data import batches, load
from runner.data.nested import described, form, moved, tensors
from runner.errors import Refusal
from runner.layout import trace_file
from runner.report.notes import notes
from runner.trace import Trace
from runner.worker.clock import Clock
from runner.worker.contract import OwnFigures, task_of
from runner.worker.digest import lanes
from runner.worker.evaluate import Evaluated, evaluate
from runner.worker.infer import answer
from runner.worker.modules import ModuleProbe
from runner.worker.train import Trained, train_model

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("one_thread")


def pictures(size: int = 8) -> Iterator[Any]:
    """The plain training data in batches."""
    train, _ = plain_data()
    for start in range(0, 128, size):
        yield torch.utils.data.default_collate([train[index] for index in range(start, start + size)])


def as_nested(source: Iterator[Any]) -> Iterator[Any]:
    """The same as NestedPlain takes them."""
    for number, (inputs, targets) in enumerate(source):
        yield {"pictures": [inputs], "number": torch.tensor([number])}, (targets,)


def trained(model: nn.Module, source: Any, *words: str, view: str = "image", brought: Any = None) -> Trained:
    config = planted_config("Plain", *words)
    task = task_of(model, view, 10, brought)
    return train_model(model.train(), task, source, config, 8, Clock(None), lambda: None)


def built(kind: type[nn.Module], *arguments: Any) -> nn.Module:
    torch.manual_seed(5)
    return kind(*arguments)


def losses(left: Trained) -> list[float]:
    return torch.stack(left.losses).tolist()


def test_a_loss_of_the_model_takes_the_place_of_the_views() -> None:
    model = built(Smoothed)
    inputs, targets = next(pictures())
    expected = functional.cross_entropy(model(inputs), targets, label_smoothing=0.1).item()
    assert losses(trained(model, pictures()))[0] == expected
    assert losses(trained(built(Plain), pictures()))[0] != expected


def test_a_loss_of_the_training_set_is_as_good() -> None:
    brought = SimpleNamespace(loss=nn.CrossEntropyLoss(label_smoothing=0.1))
    own = losses(trained(built(Plain), pictures(), brought=brought))
    model = built(Smoothed)
    model.make_scheduler = None  # type: ignore[assignment]
    assert own == losses(trained(model, pictures()))


def test_nested_data_train_as_plain_ones_do_to_the_bit() -> None:
    plain, other = built(Plain), built(NestedPlain)
    left, nested_left = trained(plain, pictures()), trained(other, as_nested(pictures()), view="custom")
    assert losses(left) == losses(nested_left)
    assert all(map(torch.equal, plain.state_dict().values(), other.state_dict().values()))


@pytest.mark.parametrize("place", range(3))
def test_every_tensor_of_a_nested_batch_is_in_the_digest_of_the_data(place: int) -> None:
    first = list(islice(as_nested(pictures()), 8))
    second = deepcopy(first)
    tensors(second[3])[place].view(-1)[0] += 1
    seen = [trained(built(NestedPlain), iter(source), view="custom").data for source in (first, second)]
    assert [torch.equal(*pair) for pair in zip(*seen, strict=True)] == [True] * 3 + [False] + [True] * 4


class ManyLosses(nn.Module):
    """Gives its losses in training, as torchvision's detection networks do."""

    def __init__(self, as_dict: bool):
        super().__init__()
        self.net, self.as_dict = Plain(), as_dict

    def forward(self, inputs: Tensor, targets: Tensor | None = None) -> Any:
        """Two losses, or the outputs."""
        outputs = self.net(inputs)
        if targets is None:
            return [{"scores": outputs}]
        loss = functional.cross_entropy(outputs, targets)
        return {"one": loss * 0.25, "other": loss * 0.75} if self.as_dict else loss


def test_a_model_that_takes_targets_gives_its_losses() -> None:
    kinds = [trained(built(ManyLosses, as_dict), pictures(), view="custom") for as_dict in (True, False)]
    assert losses(kinds[0]) == pytest.approx(losses(kinds[1]))
    assert losses(kinds[1]) == losses(trained(built(Plain), pictures()))


def test_clipped_gradients_are_those_of_a_loop_by_hand() -> None:
    model, other = built(Plain), built(Plain)
    words = ["train.optimizer=sgd", "train.momentum=0", "train.weight_decay=0", "train.learning_rate=0.1"]
    trained(model, pictures(), *words, "train.clip_norm=0.05")
    for inputs, targets in islice(pictures(), 8):
        other.zero_grad()
        functional.cross_entropy(other(inputs), targets).backward()
        length = torch.linalg.vector_norm(torch.cat([one.grad.flatten() for one in other.parameters()]))  # type: ignore[union-attr]
        assert length > 0.05
        with torch.no_grad():
            for one in other.parameters():
                one -= 0.1 * one.grad * (0.05 / (length + 1e-6))  # type: ignore[operator]
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_under_clipping_a_gradient_that_differs_explains_every_update(tmp_path: Path) -> None:
    config, traces = planted_config("Plain", "train.clip_norm=0.01"), []
    for number, factor in enumerate((1.0, 1.5)):
        model = built(Plain)
        model.net[3].weight.register_hook(lambda gradient, factor=factor: gradient * factor)
        probe = ModuleProbe(trial_of("modules", 1, number, train=config["train"]), model, CPU)
        train_model(model, task_of(model, "image", 10), pictures(), config, 1, Clock(None), lambda: None, probe)
        probe.write(tmp_path)
        traces.append(Trace.read(trace_file(tmp_path)))
    updates = [[one for one in trace.operations if one.name == "update of Linear"] for trace in traces]
    assert all(one.outputs != other.outputs for one, other in zip(*updates, strict=True)) and len(updates[0]) == 2
    assert [(one.name, one.module) for one in compare(traces).findings] == [("gradient of Linear", "net.3")]


def test_the_models_own_schedule_is_stepped_after_each_step() -> None:
    seen: list[float] = []

    class Recording(Smoothed):
        def make_scheduler(self, optimizer: Any, steps: int) -> Any:
            schedule = super().make_scheduler(optimizer, steps)
            step = schedule.step
            schedule.step = lambda: (step(), seen.append(optimizer.param_groups[0]["lr"]))
            return schedule

    trained(built(Recording), pictures())
    assert seen == pytest.approx([0.003] * 3 + [0.0003] * 5)
    with pytest.raises(Refusal, match=r"make_scheduler: train\.schedule=constant"):
        trained(built(Recording), pictures(), "train.schedule=cosine")


def test_a_schedule_that_is_none_is_refused() -> None:
    class Forgetful(Smoothed):
        def make_scheduler(self, optimizer: Any, steps: int) -> Any:
            super().make_scheduler(optimizer, steps)

    with pytest.raises(Refusal, match=r"make_scheduler gave a NoneType: it has to return what has step\(\)"):
        trained(built(Forgetful), pictures())


def evaluated(model: nn.Module, source: Any, view: str, **more: Any) -> Evaluated:
    return evaluate(model, task_of(model, view, 10), source, CPU, None, **more)


def test_own_figures_are_means_over_samples_whatever_the_batches() -> None:
    model, (inputs, targets) = built(Smoothed), next(pictures(16))
    found = evaluated(model, [(inputs[:13], targets[:13]), (inputs[13:], targets[13:])], "image").metrics
    whole = evaluated(model, [(inputs, targets)], "image").metrics
    assert whole["batch"] == 16
    assert found["batch"] == pytest.approx((13 * 13 + 3 * 3) / 16)
    assert found["top3"] == pytest.approx(whole["top3"])
    smoothed = functional.cross_entropy(model(inputs), targets, label_smoothing=0.1).item()
    assert found["loss"] == pytest.approx(smoothed, rel=1e-5)
    assert list(whole) == ["loss", "accuracy", "top3", "batch"]


def test_without_predictions_all_outputs_are_in_the_digest_and_nothing_is_kept() -> None:
    model, batch = built(ManyLosses, True), next(pictures())
    found = evaluated(model, [batch], "custom")
    assert found.metrics == {}
    assert found.predictions.size == 0 and found.predictions.dtype.kind == "f"
    again = evaluated(model, [batch], "custom")
    assert torch.equal(found.lanes, again.lanes)
    with torch.no_grad():
        next(iter(model.parameters()))[0, 0] += 1
    assert not torch.equal(found.lanes, evaluated(model, [batch], "custom").lanes)


def test_sizes_count_the_samples_of_nested_batches() -> None:
    data = load(data_settings("custom", "custom", _target_="brought.sequences", classes=None))
    sizes = batches.test_sizes(data, 4)
    assert sizes == [4, 2]
    assert [len(targets) for _, targets in batches.test_batches(data, 4, CPU)] == sizes
    found = evaluated(built(PackedLstm), batches.test_batches(data, 4, CPU), "custom", sizes=sizes)
    assert found.predictions.dtype.kind == "i" and len(found.predictions) == 6
    assert found.metrics.keys() == {"loss"}


def test_a_model_that_gives_its_losses_in_training_alone_can_be_asked_for_answers() -> None:
    model, config = built(ManyLosses, True), planted_config("Plain", "phase=infer")
    left = answer(model, task_of(model, "custom", 10), pictures(), config, 4, Clock(None))
    assert losses(left) == [0.0] * 4  # type: ignore[arg-type]
    assert len({tuple(one.tolist()) for one in left.outputs}) == 4
    assert left.not_finite(nn.Module()) is None


def test_a_report_says_that_nothing_counts_as_predicted() -> None:
    summary = make_summary(("benchmark", {}), settings={"dataset": {"name": "custom", "view": "custom"}})
    assert not [note for note in notes(summary) if "predictions" in note]
    summary["cells"][0]["reproducibility"] |= {"disagreement": None}
    (note,) = [note for note in notes(summary) if "predictions" in note]
    assert "not known: neither model nor training set has `predictions` that are classes" in note


WRONG = {
    "outputs": "the model gives (8, 7), but the 10 classes of the image view need (8, 10)",
    "vector": "the loss is float32 (8,): a floating-point tensor of one element is needed",
    "number": "the loss is a float: a floating-point tensor of one element is needed",
    "nothing": "the loss is a NoneType: a floating-point tensor of one element is needed",
    "integer": "the loss is int64 (): a floating-point tensor of one element is needed",
    "complex": "the loss is complex64 (): a floating-point tensor of one element is needed",
    "detached": "the loss is float32 () without a gradient: no weight would learn from it",
    "metric_text": "metrics give a str for 'top': a number is needed",
    "metric_vector": "metrics give float32 (3,) for 'top': a number is needed",
    "metric_list": "metrics give [float]: numbers by name are needed",
    "metric_key": "metrics name 3: a name is a text",
    "metric_clash": "metrics name 'accuracy', which is measured anyway in the view image; rename it",
    "metric_loss": "metrics name 'loss', which is measured anyway in the view image; rename it",
}


@pytest.mark.parametrize(("kind", "said"), WRONG.items())
def test_what_cannot_be_used_is_told_on_the_first_batch(kind: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        trained(built(Bad, kind), pictures())
    assert str(refused.value) == said


def test_an_error_in_a_users_loss_or_metric_names_what_it_was_given() -> None:
    brought = SimpleNamespace(loss=lambda outputs, targets: outputs @ targets, metrics=None)
    with pytest.raises(
        Refusal, match=r"the loss of outputs float32 \(8, 10\) and targets int64 \(8,\): RuntimeError: "
    ):
        trained(built(Plain), pictures(), brought=brought)
    with pytest.raises(Refusal, match=r"metrics of outputs float32 \(8, 10\) and targets int64 \(8,\): RuntimeError: "):
        trained(built(Bad, "metric_raises"), pictures())


def test_a_device_without_memory_left_is_no_fault_of_the_loss() -> None:
    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("planted")

    with pytest.raises(torch.OutOfMemoryError):
        trained(built(Plain), pictures(), brought=SimpleNamespace(loss=loss))


@pytest.mark.parametrize(
    ("model", "view", "brought", "said"),
    [
        (Plain, "custom", None, "nothing gives a loss: neither Plain nor the training set has loss(outputs, targets)"),
        (Smoothed, "image", SimpleNamespace(loss=print), "the model and the training set both have `loss`"),
        (PackedLstm, "custom", SimpleNamespace(predictions=print), "both have `predictions`"),
    ],
)
def test_what_is_not_clear_is_refused(model: type[nn.Module], view: str, brought: Any, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        task_of(model(), view, 10, brought)
    assert said in str(refused.value)


def test_two_losses_are_refused_also_where_forward_gives_one() -> None:
    with pytest.raises(Refusal, match="forward takes targets and so gives the loss, and there is a `loss` too"):
        task_of(ManyLosses(True), "custom", 10, SimpleNamespace(loss=print))


def test_metrics_of_both_count_unless_their_names_clash() -> None:
    outputs, targets = torch.zeros(4, 10), torch.zeros(4).long()
    other = SimpleNamespace(metrics=lambda outputs, targets: {"shift": 2})
    assert list(task_of(Smoothed(), "image", 10, other).metrics(outputs, targets)) == ["top3", "batch", "shift", "loss"]
    clash = SimpleNamespace(metrics=lambda outputs, targets: {"top3": 2})
    with pytest.raises(Refusal, match="metrics name 'top3', and so do the model and the training set both"):
        task_of(Smoothed(), "image", 10, clash).metrics(outputs, targets)


def test_metrics_have_the_same_names_in_every_batch() -> None:
    changing = SimpleNamespace(metrics=lambda outputs, targets: {f"of_{len(targets)}": 1})
    figures = OwnFigures(task_of(Plain(), "image", 10, changing))
    figures.update(torch.zeros(4, 10), torch.zeros(4), 4)
    with pytest.raises(Refusal, match="metrics name of_3, and of_4 for another batch"):
        figures.update(torch.zeros(3, 10), torch.zeros(3), 3)


def test_a_segmentation_networks_dict_stands_for_its_entry() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = Plain()

        def forward(self, inputs: Tensor) -> dict[str, Tensor]:
            return {"out": self.net(inputs), "aux": inputs}

    assert losses(trained(built(Two), pictures())) == losses(trained(built(Plain), pictures()))


def test_packed_sequences_are_moved_and_digested_as_a_whole() -> None:
    train, _ = sequences()
    packed, _ = train.collate_fn([train[0], train[1]])
    there = moved({"a": [packed, 3]}, torch.device("meta"))
    assert isinstance(there["a"][0], PackedSequence) and there["a"][0].data.device.type == "meta"
    assert there["a"][1] == 3
    assert [tensor.shape for tensor in tensors([packed])] == [packed.data.shape]
    assert torch.equal(lanes(tensors([packed])), lanes([packed.data]))


def test_forms_tell_shapes_apart_and_descriptions_are_short() -> None:
    one, other = torch.zeros(2, 3), torch.zeros(3, 2)
    assert form(one) == (2, 3) and form([one, {"a": other}]) == ((2, 3), (3, 2))
    assert form([one, other]) != form([other, one])
    assert described({"a": [one, one, one, one], "b": (1, "x")}) == (
        "{a: [float32 (2, 3), float32 (2, 3), float32 (2, 3), ...], b: (int, str)}"
    )


def test_nested_items_are_stacked_as_pytorch_does_it() -> None:
    data = load(data_settings("custom", "custom", _target_="brought.nested", classes=None))
    inputs, targets = next(iter(batches.test_batches(data, 4, CPU)))
    assert form(inputs) == ((4,), (4, 1, 8, 8)) or form(inputs) == ((4, 1, 8, 8), (4,))
    assert form(targets) == ((4,),)
    assert nested()[0][0][0]["number"] == 0
