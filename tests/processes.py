"""The real command in real processes."""

import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from concont.api import train
from concont.classic import features
from concont.images.cache import load_images
from concont.images.files import read_image
from concont.runs.folder import write_whole
from concont.runs.lock import FolderLock

# One thread each: bit for bit the same whatever the number of cores.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", "CUDA_VISIBLE_DEVICES": ""}
COMMAND = [sys.executable, "-m", "concont"]
SECONDS = 200

# A process that has imported everything once; the command's processes are its children, which
# saves them the two seconds that PyTorch takes.
WARM = multiprocessing.get_context("forkserver")
WARM.set_forkserver_preload(
    [
        *("concont.cli", "concont.cli.demo_run", "concont.display"),
        *("concont.api", "concont.answers.predict", "concont.deploy.export"),
        *("concont.sweep.schedule", "concont.paper.comparison", "concont.classic.sspl"),
        *("concont.classic.parm", "sklearn.datasets", "rich.table", "rich.progress"),
    ]
)


def begin(*words, cwd=None, out):
    """The command in a warm process that goes on by itself; its output goes to the file `out`."""
    words = [str(word) for word in words]
    process = WARM.Process(target=_main, args=(words, cwd, 100, str(out), str(out)))
    process.start()
    return process


def concont(*words, cwd=None, columns=100):
    """Run to the end; returns the finished process with its output as text."""
    words = [str(word) for word in words]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("stdout", "stderr")]
        process = WARM.Process(target=_main, args=(words, cwd, columns, *map(str, paths)))
        process.start()
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            raise subprocess.TimeoutExpired(words, SECONDS)
        texts = [path.read_text("utf-8") for path in paths]
    return subprocess.CompletedProcess(words, process.exitcode, *texts)


def fresh(*words, cwd=None, umask=-1):
    """The same in a process that has yet to import everything; umask: -1 for this process's own."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env=ENVIRONMENT,
        umask=umask,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def start(*words, cwd=None):
    """Start and leave running."""
    return subprocess.Popen(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def at_once(work, *arguments):
    """Do the same work in two processes; each gets a barrier that waits for the other."""
    barrier = WARM.Barrier(2)
    both = [WARM.Process(target=work, args=(barrier, *arguments)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(SECONDS)
    return [process.exitcode for process in both]


def hold_lock(folder, connection):
    """Lock a run folder, say so, and wait."""
    lock = FolderLock()
    lock.acquire(folder)
    connection.send(os.getpid())
    connection.recv()


def write_file(barrier, path):
    """Write a file of this process's own number, renamed when both have been written."""

    def write(temporary):
        temporary.write_text(f"{os.getpid()}" * 1000)
        barrier.wait(SECONDS)

    write_whole(path, write)


def fill_gist_cache(barrier, folder, images):
    """Compute and keep the features of images, renamed into the cache when both are written."""
    os.environ["XDG_CACHE_HOME"] = str(folder)
    save = np.save

    def save_and_wait(*arguments):
        save(*arguments)
        barrier.wait(SECONDS)

    np.save, features.log.warning = save_and_wait, pytest.fail
    features.compute_features(images, 16, "cpu")


def fill_image_cache(barrier, paths, size, folder):
    """Load images; both processes have decoded all of them before either keeps them."""

    def wait_at_the_end(done, total):
        if done == total:
            barrier.wait(SECONDS)

    images = load_images(paths, size, 3, "crop", folder, wait_at_the_end)
    for path, pixels in zip(paths, images.pixels, strict=True):
        assert np.array_equal(pixels, read_image(path, size, 3, "crop"))


def train_in_a_child(config, arrays, folder):
    """As a program would that forks after it has used PyTorch."""
    torch.set_num_threads(2)
    train(config, data=arrays, out=folder / "parent")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            train(config, data=arrays, out=folder / "child")
            code = 0
        finally:
            os._exit(code)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def begin_ranks(size, work, arguments, **environment):
    """The same work in so many warm processes, as ranks; arguments: of each, from its number."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    place = {"WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **environment}
    found = []
    for rank in range(size):
        at = {name: str(value) for name, value in {**place, "RANK": rank}.items()}
        process = WARM.Process(target=_as_rank, args=(at, work, arguments(rank)))
        process.start()
        found.append(process)
    return found


def on_ranks(size, work, *arguments):
    """The same to its end; their exit codes."""
    processes = begin_ranks(size, work, lambda rank: arguments)
    for process in processes:
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
    return [process.exitcode for process in processes]


def concont_on_ranks(size, *words, folder, other=(), **environment):
    """The command as so many ranks, to its end; exit code, output and errors of each.

    other: words that rank 1 is given beside those of all.
    """

    def arguments(rank):
        own = [str(word) for word in (*words, *(other if rank == 1 else ()))]
        return own, None, 100, *(str(folder / f"{rank}.{kind}") for kind in ("out", "err"))

    found = []
    for rank, process in enumerate(begin_ranks(size, _main, arguments, **environment)):
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
        texts = [(folder / f"{rank}.{kind}").read_text("utf-8") for kind in ("out", "err")]
        found.append((process.exitcode, *texts))
    return found


def _as_rank(environment, work, arguments):
    ENVIRONMENT.update(environment)
    os.environ.update(environment)
    torch.set_num_threads(1)
    work(*arguments)


def _main(words, cwd, columns, out, err):
    for path, number in ((out, 1), (err, 2)):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(handle, number)
        os.close(handle)
    os.environ.clear()
    os.environ.update(ENVIRONMENT, COLUMNS=str(columns))
    if cwd is not None:
        os.chdir(cwd)
    sys.argv = ["concont", *words]
    from concont.cli import main

    torch.set_num_threads(1)
    main()


def own_body(seed=0):
    """A network of a user's own, for images of 8 x 8, with random draws of its own."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Dropout(0.2))


def train_own(config, arrays, folder):
    """Train that network."""
    train(config, data=arrays, model=own_body(), out=folder)


def train_at_a_terminal(terminal, config, folder):
    """Train as a program does whose standard error a person watches."""
    os.dup2(os.open(terminal, os.O_RDWR), 2)
    train(config, out=folder)
