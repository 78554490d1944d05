import itertools
import logging
import subprocess
import warnings
from contextlib import contextmanager

import pytest
import torch

from concont.config.resolve import resolve
from concont.training.cuda_speed import Captured, CompiledNet, compiled, reason, should_compile
from processes import COMMAND, ENVIRONMENT

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def test_compiled_only_where_asked_for():
    def asked(device, **train):
        return should_compile(resolve({"train": train}), device)

    assert [asked(CPU), asked(CPU, compile=True)] == [False, True]
    assert [asked(GPU), asked(GPU, compile=False)] == [True, False]


def double(values):
    """Twice the values."""
    return 2 * values


def test_a_part_that_is_not_to_be_compiled_stays_itself():
    assert compiled(double, False) is double


@pytest.fixture
def broken(monkeypatch):
    """A compiler that fails at the first call, as the real one does; counts its calls."""
    calls = []

    def compiler(part, **options):
        def call(*args):
            calls.append(part)
            try:
                raise OSError("no compiler here\nand much more about it")
            except OSError as error:
                raise RuntimeError("backend 'inductor' raised") from error

        return call

    monkeypatch.setattr(torch, "compile", compiler)
    return calls


def test_where_compilation_fails_one_line_says_so_and_the_plain_code_runs(broken, caplog):
    part = compiled(double)
    with caplog.at_level(logging.WARNING, "concont"):
        assert [part(n) for n in (1, 2, 3)] == [2, 4, 6]
    assert caplog.messages == ["not compiled, so slower: no compiler here"]
    assert broken == [double]
    assert part.__doc__ == double.__doc__


def test_parts_of_one_step_give_a_reason_once(broken, caplog):
    said = set()
    parts = [compiled(double, True, said), compiled(double, True, said), compiled(double)]
    assert [part(2) for part in parts] == [4, 4, 4]
    assert len(caplog.messages) == 2  # the last part is on its own
    assert len(broken) == 3


def test_a_mistake_in_the_part_itself_is_raised(broken):
    with pytest.raises(TypeError, match="unsupported operand"):
        compiled(double)(None)


def test_hints_of_the_compiler_are_not_shown(monkeypatch):
    def compiler(part, **options):
        def call(*args):
            warnings.warn("consider setting a precision", stacklevel=1)
            return part(*args)

        return call

    monkeypatch.setattr(torch, "compile", compiler)
    assert compiled(double)(3) == 6  # a warning would be an error here


def chain(*errors):
    for outer, inner in itertools.pairwise(errors):
        outer.__cause__ = inner
    return errors[0]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("one line"), "one line"),
        (ValueError("\n  the first\nthe second"), "the first"),
        (chain(RuntimeError("outer"), OSError("middle"), KeyError("root\nmore")), "'root\\nmore'"),
        (chain(RuntimeError("outer"), OSError("root\nmore")), "root"),
        (ValueError(), "ValueError"),
    ],
)
def test_the_reason_is_the_first_line_of_the_root(error, expected):
    assert reason(error) == expected


class Stream:
    def wait_stream(self, other):
        pass

    def wait_event(self, event):
        event.waited = self


class Device:
    """Stands in for CUDA; notes in what way each update ran, and on what."""

    def __init__(self, monkeypatch, refuses=False):
        self.seen, self.restored, self.way, self.refuses = [], [], "plain", refuses
        self.streams = set()
        for name, replacement in {
            "Stream": Stream,
            "current_stream": Stream,
            "stream": lambda stream: self.in_way("aside", stream),
            "graph": lambda graph, stream, **options: self.in_way("captured", stream),
            "CUDAGraph": lambda: self,
            "default_generators": [self],
            "current_device": lambda: 0,
        }.items():
            monkeypatch.setattr(torch.cuda, name, replacement)

    @contextmanager
    def in_way(self, way, stream):
        self.way = way
        self.streams.add(stream)
        try:
            yield
        finally:
            self.way = "plain"

    def replay(self):
        self.seen.append("replayed")

    def clone_state(self):
        return f"generator in way {self.way}"

    def graphsafe_set_state(self, state):
        self.restored.append(state)

    def update(self, index, images, draws):
        if self.way == "captured" and self.refuses:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        self.seen.append((self.way, index.item(), images.item(), draws["weak"].item()))


def inputs(n):
    return torch.tensor([n]), torch.tensor([10 * n]), {"weak": torch.tensor([100 * n])}


def updates(way, numbers):
    return [(way, n, 10 * n, 100 * n) for n in numbers]


def test_an_update_is_captured_after_a_few_and_replayed_from_then_on(monkeypatch):
    device = Device(monkeypatch)
    captured = Captured(device.update)
    for n in range(6):
        captured(*inputs(n))
    warm, capture = updates("aside", range(3)), updates("captured", [3])
    assert device.seen == [*warm, *capture, *["replayed"] * 3]
    assert device.restored == []
    index, images, draws = captured.inputs  # from where the graph reads
    assert (index.item(), images.item(), draws["weak"].item()) == (5, 50, 500)


def test_an_update_that_cannot_be_captured_goes_on_as_it_is(monkeypatch, caplog):
    device = Device(monkeypatch, refuses=True)
    captured = Captured(device.update)
    for n in range(6):
        captured(*inputs(n))
    assert device.seen == updates("aside", range(6))
    assert device.streams == {captured.stream}  # autograd complains where weights change streams
    assert device.restored == ["generator in way plain"]  # as it was before
    (line,) = caplog.messages
    assert line == (
        "not captured as a CUDA graph, so slower: operation not permitted when stream is capturing"
    )


class Event:
    marked, waited = False, None

    def record(self):
        self.marked = True


def test_a_pass_on_its_own_stream_waits_for_the_views_and_for_nothing_else(monkeypatch):
    device = Device(monkeypatch)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    own, ways = Stream(), []

    def passes(*views):
        ways.append(device.way)
        return views

    key, online = CompiledNet(None, passes, own), CompiledNet(None, passes, None)
    key.mark_start()
    assert key.features(1, 2) == online.features(1, 2) == (1, 2)
    assert ways == ["aside", "plain"]
    assert key.run_on_stream(lambda: device.way) == "aside"
    assert online.run_on_stream(lambda: device.way) == "plain"
    assert key.ready.marked
    assert key.ready.waited is own
    assert online.ready.waited is None


def test_what_a_captured_update_is_given_stays_as_it_was(monkeypatch):
    captured, first = Captured(Device(monkeypatch).update), inputs(1)
    captured(*first)
    captured(*inputs(2))
    assert first == (1, 10, {"weak": 100})


@pytest.mark.slow
@pytest.mark.long
def test_a_machine_without_a_compiler_trains_all_the_same(tmp_path):
    words = ("train", "--data", "digits", "--epochs", "1", "--compile", "--device", "cpu")
    tools = {"CXX": "/nonexistent/c++", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [*COMMAND, *words, "--set", "model.width=4"],
        cwd=tmp_path,
        env={**ENVIRONMENT, **tools},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("not compiled, so slower: ")
    assert "/nonexistent/c++" in line
    assert "test accuracy" in done.stdout
