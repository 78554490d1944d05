import pytest
import torch

from concont.config import resolve
from concont.engine.speed import losses_of
from concont.types import Nets
from toys import LinearNet, problem

CPU = torch.device("cpu")


def test_compiled_only_where_asked_for():
    def compiled(device, **train):
        return hasattr(losses_of(resolve({"train": train}), device), "_torchdynamo_orig_callable")

    gpu = torch.device("cuda")
    assert [compiled(CPU), compiled(CPU, compile=True)] == [False, True]
    assert [compiled(gpu), compiled(gpu, compile=False)] == [True, False]


@pytest.mark.slow
def test_compiled_losses_are_the_eager_ones():
    settings = resolve({"method": {"name": "partial"}, "train": {"compile": True}})
    nets, batch = Nets(LinearNet(2), LinearNet(2)), problem()
    batch.views["weak"].requires_grad_()
    grads = []
    for losses in (losses_of(settings, CPU), settings.method.losses):
        out = losses(nets, {}, batch)
        grads.append(torch.autograd.grad(out.total, batch.views["weak"])[0])
    assert torch.allclose(*grads, atol=1e-12)


@pytest.mark.slow
def test_nothing_in_concont_breaks_the_graph():
    settings = resolve({"method": {"queue": 16}})
    nets, batch, method = Nets(LinearNet(2), LinearNet(3)), problem(), settings.method
    state = {k: v.double() if v.is_floating_point() else v for k, v in init(method).items()}
    explained = torch._dynamo.explain(method.losses)(nets, state, batch)
    assert explained.graph_break_count == 0, explained.break_reasons


def init(method):
    return method.init_state(6, 4, 5)
