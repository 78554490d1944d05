"""The same numbers, sooner: compiled parts of a step, and a step replayed as one CUDA graph."""

import logging
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from concont.memory import tells_of_full_memory
from concont.runs.settings import Settings
from concont.types import Net, Nets

P = ParamSpec("P")
R = TypeVar("R")
Passes = Callable[..., tuple[Tensor, ...]]
Update = Callable[[Tensor, Tensor, Mapping[str, Tensor]], None]
log = logging.getLogger("concont")


def should_compile(settings: Settings, device: torch.device) -> bool:
    """Whether to compile; by default on a GPU only."""
    chosen = settings.train.compile
    return device.type == "cuda" if chosen is None else chosen


def start_compile_workers() -> None:
    """Start the processes that compile in parallel, so that they are up when they are needed."""
    try:
        import torch._inductor.async_compile  # noqa: F401  (starts them)
    except Exception as error:  # compilation itself will say what is missing
        log.debug("no compile workers: %s", error)


def compiled(
    part: Callable[P, R], fast: bool = True, reasons: set[str] | None = None
) -> Callable[P, R]:
    """`part` compiled, or as it is where that is not wanted or not possible here.

    Compilation happens in the first call, before anything is computed: where it fails, one line
    says so and the plain code runs from then on. Parts that share `reasons` give each once.
    """
    if not fast:
        return part
    from torch._dynamo.exc import TorchDynamoException

    given = set() if reasons is None else reasons
    current: Callable[P, R] = torch.compile(part, dynamic=False)
    proven = False

    @wraps(part)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal current, proven
        try:
            result = (current if proven else without_warnings(current))(*args, **kwargs)
        except Exception as error:  # a missing compiler, an old GPU, a user's network: many kinds
            compiling = isinstance(error, TorchDynamoException)
            if not compiling and tells_of_full_memory(error):  # the plain code takes no less
                raise
            if proven and not compiling:  # other shapes compile later
                raise
            why = reason(error)
            if why not in given:
                log.warning("not compiled, so slower: %s", why)
                given.add(why)
            current = part
        else:
            proven = True
            return result
        proven = True
        return part(*args, **kwargs)  # here, since an error that is handled keeps its tensors

    return call


def without_warnings(part: Callable[P, R]) -> Callable[P, R]:
    """`part` without the compiler's hints to those who tune kernels."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return part(*args, **kwargs)

    return call


def reason(error: BaseException) -> str:
    """The first line of the error at the root of a failure."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


class CompiledNet:
    """A network whose passes are compiled by themselves and may run beside another one's.

    On a stream of its own a pass starts when the views are there (`mark_start`), not when what was
    asked for before it has ended. Whoever asks for its features waits for them on the device.
    """

    def __init__(self, network: Net, passes: Passes, stream: torch.cuda.Stream | None) -> None:
        self.network, self.passes, self.stream = network, passes, stream
        self.ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
        # Here rather than on the method: it imports the compiler, which takes a second.
        self.features = torch.compiler.disable(self._features)  # type: ignore[no-untyped-call]

    def mark_start(self) -> None:
        """What is asked for from here on may start here."""
        self.ready.record()

    def run_on_stream(self, make: Callable[[], R]) -> R:
        """Run this on the stream of its own, from here on; only its passes may read the result."""
        if self.stream is None:
            return make()
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            return make()

    def _features(self, *views: Tensor) -> tuple[Tensor, ...]:
        """As the network's own."""
        if self.stream is None:
            return self.passes(*views)
        self.stream.wait_event(self.ready)
        with torch.cuda.stream(self.stream):
            found = self.passes(*views)
        torch.cuda.current_stream().wait_stream(self.stream)
        return found

    def logits(self, features: Tensor) -> Tensor:
        """As the network's own."""
        return self.network.logits(features)

    def embed(self, features: Tensor) -> Tensor:
        """As the network's own."""
        return self.network.embed(features)


def compile_networks(nets: Nets, reasons: set[str]) -> tuple[CompiledNet, CompiledNet]:
    """The online and the key network; the key network's passes run beside the online one's."""
    online, key = (compiled(net.features, True, reasons) for net in (nets.online, nets.key))
    own = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    return CompiledNet(nets.online, online, None), CompiledNet(nets.key, key, own)


class Captured:
    """Replays an update as one CUDA graph, after a few ordinary ones that warm it up.

    Inputs are copied to fixed places, from which the graph reads them.
    """

    WARM_UP = 3

    def __init__(self, update: Update) -> None:
        self.update = update
        self.inputs: tuple[Tensor, Tensor, dict[str, Tensor]] | None = None
        self.graph: torch.cuda.CUDAGraph | None = None
        # One for all that is not replayed: autograd keeps to the stream where it met the weights.
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.calls = 0
        self.possible = True

    def __call__(self, index: Tensor, images: Tensor, draws: Mapping[str, Tensor]) -> None:
        """The update of one batch; all batches have the same shapes."""
        self._copy_inputs(index, images, draws)
        if self.calls >= self.WARM_UP and self.graph is None and self.possible:
            self._capture()
        self.calls += 1
        if self.graph is None:
            self._run_aside()
        else:
            self.graph.replay()

    def _copy_inputs(self, index: Tensor, images: Tensor, draws: Mapping[str, Tensor]) -> None:
        if self.inputs is None:
            copies = {name: tensor.clone() for name, tensor in draws.items()}
            self.inputs = (index.clone(), images.clone(), copies)
            return
        own_index, own_images, own_draws = self.inputs
        own_index.copy_(index)
        own_images.copy_(images)
        for name, tensor in draws.items():
            own_draws[name].copy_(tensor)

    def _run(self) -> None:
        assert self.inputs is not None
        self.update(*self.inputs)

    def _run_aside(self) -> None:
        """An ordinary update, on the stream that is captured from."""
        here = torch.cuda.current_stream()
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            self._run()
        here.wait_stream(self.stream)

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        # A capture that fails leaves the generator in the middle of it: this copy is not.
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        before = generator.clone_state()
        try:
            # Of this thread alone, since another one may be fetching the next images.
            with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                self._run()
        except Exception as error:  # a user's network may wait for the device or copy from it
            log.warning("not captured as a CUDA graph, so slower: %s", reason(error))
            self.possible = False
            generator.graphsafe_set_state(before)
        else:
            self.graph = graph
