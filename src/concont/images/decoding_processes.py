"""Image files read on every core: processes that are handed a few of them at a time."""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from typing import IO, Any

from concont.cores import count_cores
from concont.errors import ConcontError
from concont.images.decoding import Decoded, Decoder, verify_file
from concont.images.packs import Form

Task = tuple[int, str]  # row of the pack, path of the image
AT_ONCE = 16  # images that a process is handed at a time
WORTH_A_PROCESS = 32  # images; fewer are decoded sooner than a process starts
# Not by multiprocessing, which would run the user's own script again in each process.
PROGRAM = """
import json, sys
job = json.loads(sys.stdin.buffer.readline())
sys.path[:] = job["sys_path"]
from concont.images.decoding import serve
serve(job["target"])
"""


@dataclass(frozen=True)
class Target:
    """The pack that pixels are written to, and the sums of images that need not be."""

    pack: str
    first_row: int
    form: Form
    known: Sequence[str]


def decode_files(
    tasks: Sequence[Task], target: Target, take: Callable[[list[Decoded]], None]
) -> None:
    """Decode images into their rows; `take` is given what became of them, a few at a time."""
    _read_files(tasks, target, take)


def verify_files(
    paths: Sequence[str], report: Callable[[int, int], None] | None = None
) -> list[Decoded]:
    """Whether each file can be decoded; `report` hears how many of how many are done."""
    found: list[Decoded] = []

    def take(results: list[Decoded]) -> None:
        found.extend(results)
        if report is not None:
            report(len(found), len(paths))

    _read_files(list(enumerate(paths)), None, take)
    return sorted(found)


def _read_files(
    tasks: Sequence[Task], target: Target | None, take: Callable[[list[Decoded]], None]
) -> None:
    workers = min(count_cores(), len(tasks) // WORTH_A_PROCESS)
    chunks = [tasks[k : k + AT_ONCE] for k in range(0, len(tasks), AT_ONCE)]
    if workers < 2:
        _read_here(chunks, target, take)
    else:
        _read_in_processes(chunks, target, take, workers)


def _read_here(
    chunks: Sequence[Sequence[Task]],
    target: Target | None,
    take: Callable[[list[Decoded]], None],
) -> None:
    read: Callable[[int, str], Decoded] = verify_file
    with ExitStack() as stack:
        if target is not None:
            read = stack.enter_context(closing(Decoder(**vars(target))))
        for chunk in chunks:
            take([read(row, path) for row, path in chunk])


def _read_in_processes(
    chunks: Sequence[Sequence[Task]],
    target: Target | None,
    take: Callable[[list[Decoded]], None],
    workers: int,
) -> None:
    left = iter(chunks)
    with ExitStack() as stack:
        busy = stack.enter_context(selectors.DefaultSelector())
        for _ in range(workers):
            process = stack.enter_context(_Process(target))
            process.hand(next(left))
            busy.register(process.output, selectors.EVENT_READ, process)
        while busy.get_map():
            for key, _ in busy.select():
                process = key.data
                take(process.take())
                chunk = next(left, None)
                if chunk is None:
                    busy.unregister(process.output)
                else:
                    process.hand(chunk)


class _Process:
    """One process, that has at most one handful of images at a time; killed on the way out."""

    def __init__(self, target: Target | None) -> None:
        self.said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed on the way out)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for this process, which ends the other
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout
        self.chunk: Sequence[Task] = ()
        told = None if target is None else asdict(target)
        self.job = {"target": told, "sys_path": sys.path}

    def __enter__(self) -> "_Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for file in (self.output, self.said):
            file.close()
        with suppress(BrokenPipeError):  # what it was yet to be told
            self.input.close()

    def hand(self, chunk: Sequence[Task]) -> None:
        """Give it images to read."""
        if not self.chunk:
            self._send(self.job)
        self.chunk = chunk
        self._send(chunk)

    def take(self) -> list[Decoded]:
        """What became of them."""
        line = self.output.readline()
        if not line.endswith(b"\n"):
            raise ConcontError(self._explain_end())
        answer = json.loads(line)
        if isinstance(answer, dict):
            raise OSError(*answer["error"])
        return [Decoded(*fields) for fields in answer]

    def _send(self, content: Any) -> None:
        try:
            self.input.write(json.dumps(content).encode() + b"\n")
            self.input.flush()
        except BrokenPipeError:
            raise ConcontError(self._explain_end()) from None

    def _explain_end(self) -> str:
        code = self.process.wait()
        how = f"ended with code {code}"
        if code == -signal.SIGKILL:
            how = "was killed, as happens where memory runs out,"
        elif code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        where = f" at one of {self.chunk[0][1]} ... {self.chunk[-1][1]}" if self.chunk else ""
        self.said.seek(0)
        last = self.said.read().decode(errors="replace").strip().splitlines()[-1:]
        return " ".join(f"a process that decodes images {how}{where}: {''.join(last)}".split())
