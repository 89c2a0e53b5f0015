"""Follow the gradients between the calls of a model's modules: each is an entry made of those that came before it.

Autograd's graph says which calls used a tensor or a parameter; hooks on the tensors see the gradients arrive. They only
look: what autograd computes stays as it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.utils.hooks import RemovableHandle

from runner.worker.recorder import Known, Recorder

Edge = tuple[Any, int]  # a node of autograd's graph, and which of its outputs: it stands for a tensor


@dataclass(frozen=True, eq=False)
class _Call:
    """Code of a module: its path, what it took and gave, and the edges of what it gave."""

    path: str
    values: list[Known]
    edges: list[Edge]


class Gradients:
    """The gradients of one step that arrive at what modules and the code between them have made.

    `given` is what the model gave.
    """

    def __init__(self, recorder: Recorder, model: nn.Module):
        self._recorder, self._model = recorder, model
        self.given: list[Known] = []
        self._given_edges: set[Edge] = set()
        self._hooks: list[RemovableHandle] = []
        self._users: dict[Edge, list[_Call]] = {}
        self._parameters: dict[int, list[_Call]] = defaultdict(list)
        self._arrived: dict[Edge, Known] = {}

    def follow(self, path: str, values: list[Known], made: Iterable[Tensor]) -> None:
        """Wait for the gradients of what this module's code made; `values` are the tensors that it took and gave."""
        tensors = {(one.grad_fn, one.output_nr): one for one in made if _can_be_followed(one)}
        new = {edge: one for edge, one in tensors.items() if edge not in self._users}
        call = _Call(path, values, list(new))
        for edge in self._reached(new):
            parameter = getattr(edge[0], "variable", None)  # the node that accumulates a parameter's gradient has it
            users = self._users[edge] if parameter is None else self._parameters[id(parameter)]
            users.append(call)
        for edge, tensor in new.items():
            self._users[edge] = []
            self._hooks.append(tensor.register_hook(partial(self._arrives, edge)))

    def give(self, values: list[Known], tensors: Iterable[Tensor]) -> None:
        """Take down what the model gave: the loss is made of it."""
        self.given, self._given_edges = values, {(one.grad_fn, one.output_nr) for one in tensors}

    def end(self) -> None:
        """Let go of the graph: nodes and hooks hold one another, and Python's collector does not see it."""
        for hook in self._hooks:
            hook.remove()
        self._users.clear()
        self._parameters.clear()

    def behind(self, parameters: Iterable[nn.Parameter]) -> list[Known]:
        """What the gradients of these parameters follow from; nothing where that is not known."""
        used = [call for parameter in parameters for call in self._parameters.get(id(parameter), ())]
        return self._inputs(used) if used else []

    def _arrives(self, edge: Edge, gradient: Tensor | None) -> None:
        if gradient is None:
            return
        calls, index = self._users[edge], self._recorder.next_index
        path = _container([call.path for call in calls])
        through = type(self._model.get_submodule(path)).__name__ if calls else "the loss"
        inputs = self._inputs(calls) + (self.given if not calls or edge in self._given_edges else [])
        known = self._recorder.look_at(gradient, index, finite=True)
        self._recorder.add("backward", f"gradient through {through}", path, inputs, [known])
        self._arrived.pop(edge, None)
        self._arrived[edge] = known

    def _inputs(self, calls: list[_Call]) -> list[Known]:
        """The gradients of what these calls gave, and the values that their backward pass may look at.

        Where no gradient was seen to arrive, the last one seen anywhere stands for it.
        """
        edges = [edge for call in calls for edge in call.edges]
        arrived = [self._arrived[edge] for edge in edges if edge in self._arrived]
        if len(arrived) < len(edges) or not edges:
            arrived += list(self._arrived.values())[-1:]
        return list(dict.fromkeys([*arrived, *(value for call in calls for value in call.values)]))

    def _reached(self, edges: Iterable[Edge]) -> Iterator[Edge]:
        """From these edges on: those of tensors that are followed, and of parameters, on the near side of the first."""
        ahead, seen = [edge[0] for edge in edges], set()
        while ahead:
            node = ahead.pop()
            for edge in () if node in seen else node.next_functions:
                if edge[0] is None or edge in seen:
                    continue
                if edge in self._users or hasattr(edge[0], "variable"):
                    seen.add(edge)
                    yield edge
                else:
                    ahead.append(edge[0])
            seen.add(node)


def _can_be_followed(tensor: Tensor) -> bool:
    return tensor.grad_fn is not None and not is_functorch_wrapped_tensor(tensor)


def _container(paths: list[str]) -> str:
    """The path of the innermost module that holds these."""
    levels = zip(*(path.split(".") for path in paths), strict=False)
    return ".".join(names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels))
