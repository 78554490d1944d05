"""A GPU that computes nothing: what a step would ask of one, told where there is none.

Its tensors have a shape and a type but no values, so whatever needs a value is refused.
"""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from concont.training import prepare
from concont.training.step import Step
from concont.types import Nets

GPU = torch.device("cuda:0")
WRITE_INTO = ("index_add", "index_copy", "index_put", "scatter")  # no type but their own
UNKNOWN = "_fused_sgd_"  # the optimiser writes in place, and a fake one has no such operation


class Refused(Exception):
    """A captured step cannot do this, or would wait for it, or a GPU has no such operation."""


class CapturedAlike(TorchDispatchMode):
    """Refuses what `FakeTensorMode` allows and a CUDA graph does not, or a GPU does not."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name, given = operation.__name__, list_tensors((args, kwargs))
        made = None if name.startswith(UNKNOWN) else operation(*args, **(kwargs or {}))
        for tensor in [*given, *list_tensors(made)]:
            if tensor.device != GPU:
                raise Refused(f"{name}: a tensor of {tuple(tensor.shape)} in main memory")
        if name.startswith(WRITE_INTO):
            kinds = {tensor.dtype for tensor in (given[0], given[-1])}
            if len(given) > 2 and len(kinds) > 1:
                raise Refused(f"{name}: {given[-1].dtype} into {given[0].dtype}")
        return made


def list_tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def like(tensor):
    """One of its shape, strides and type on the fake GPU."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=GPU)


def move(network):
    """As `network.to(GPU)`, which fake tensors do not allow."""
    for module in network.modules():
        for name, weight in module.named_parameters(recurse=False):
            module._parameters[name] = nn.Parameter(like(weight), weight.requires_grad)
        for name, buffer in module.named_buffers(recurse=False):
            module._buffers[name] = like(buffer)
    return network


@contextmanager
def on_fake_gpu(ready, monkeypatch, votes=False):
    """The step of a run that was prepared on the CPU, and what it is called with, on a fake GPU.

    Only autograd's backward pass, which asks the driver, is left out: gradients are made up.
    """
    monkeypatch.setattr("torch.cuda.amp.common.amp_definitely_not_available", lambda: False)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda: True)
    (images,) = ready.data.batches(ready.order.epoch(0)[:1])
    modules = ready.state.nets.modules
    with FakeTensorMode():
        nets = Nets(*(move(modules.get(name, modules["online"])) for name in ("online", "key")))
        sets, truth = like(ready.data.candidates), like(ready.data.truth)
        weights = torch.empty(sets.shape, device=GPU) if votes else None
        data = replace(
            ready.data,
            images=SimpleNamespace(device=GPU),
            candidates=sets,
            truth=truth,
            weights=weights,
        )
        monkeypatch.setattr(prepare, "with_key", lambda *_: nets)
        monkeypatch.setattr(prepare, "torch_stream", lambda *_, device: torch.Generator())
        monkeypatch.setattr(prepare, "_rate_on", lambda _, lr: lr)  # the optimiser looks at it
        state = prepare.make_initial_state(ready.settings, nets.online, sets)
        for group in state.optimizer.param_groups:
            group["lr"] = torch.empty((), device=GPU)
        monkeypatch.setattr(torch.Tensor, "backward", lambda _: give_gradients(state.optimizer))
        step = Step(ready.settings, state, data, False, ready.order.leading_partial)
        draws = {name: like(drawn) for name, drawn in step.draw(len(images)).items()}
        index = torch.empty(len(images), dtype=torch.int64, device=GPU)
        yield step, (index, like(images), draws)


def give_gradients(optimizer):
    for group in optimizer.param_groups:
        for weight in group["params"]:
            weight.grad = torch.empty_like(weight)
