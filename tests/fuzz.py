"""Damaged and hostile files for every reader: `make fuzz`, or `python tests/fuzz.py --help`.

Each case is a good file that is spoilt by a generator of its own, known by seed, reader and number.
A reader may give a result, or refuse with a ConcontError or an OSError. Anything else is a finding:
another exception, a case that takes too long, memory beyond a bound, a file opened outside the
folders that the reader was given, a process or a connection started.
"""

import argparse
import copy
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import fuzz_readers
from concont.errors import ConcontError
from concont.nets.weights import WEIGHTS

SECONDS = 10  # of a case
MEMORY = 2 * 2**30  # bytes beyond those that the imports take
FIXED = 1  # the seed that never changes
FINDINGS = 3  # exit code of a process that had some; one that died has another
WORDS = (
    *(b"", b"\0", b"\xff" * 8, b"\n", b'"', b"'", b"[", b"]", b"{", b"}", b"|", b",", b":", b"-"),
    *(
        b"-1",
        b"0",
        b"1e999",
        b"NaN",
        b"99999999999999999999",
        b"null",
        b"true",
        b"..",
        b"/etc/passwd",
    ),
    *(b"&a [*a]", b"<<: ", b"!!python/object/apply:os.system [exit]", b"=1+1", b"\x1b]0;x\x07"),
    *(b"\xe2\x80\xae", b"PK\x03\x04", b"\x80\x04", b"(" * 300, b"[" * 300, b" " * 300),
)
ODD = (
    *(None, True, False, 0, -1, 1, 2.5, 10**30, -(10**30), 1e300, math.inf, math.nan, "", "x", "1"),
    *("/etc/passwd", "../..", "\x1b[31m", "a" * 5000, [], {}, [[]], {"": None}, [None] * 50),
    *({"a": {"b": {"c": {}}}}, "!!x", "\0", [1, 2, 3], ["a", "b"], "digits", "timm:", "x:y"),
)
ALLOWED = (
    *map(os.path.realpath, (sys.prefix, sys.base_prefix)),
    *("/usr", "/proc", "/sys", "/dev", "/etc", "/lib", "/opt"),
)
SOURCE = str(Path(__file__).parent.parent)
FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.fork", "socket.connect", "os.kill")


class TooLong(BaseException):
    """A case did not end."""


@dataclass(frozen=True)
class Case:
    """What tells a case from every other."""

    seed: int
    reader: str
    number: int

    def __str__(self):
        return f"--seed {self.seed} --reader {self.reader} --case {self.number}"

    @property
    def draw(self):
        """Its own stream of random numbers."""
        return random.Random(f"{self.seed}/{self.reader}/{self.number}")


def spoil(content, draw):
    """The bytes with one to eight changes."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        place, length = draw.randrange(len(data) + 1), draw.choice((1, 2, 4, 8, 64, 1000))
        kind = draw.randrange(7)
        if kind == 0 and data:
            data[min(place, len(data) - 1)] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[place : place + length] = draw.randbytes(length)
        elif kind == 2:
            del data[place : place + length]
        elif kind == 3:
            data[place:place] = draw.choice(WORDS)
        elif kind == 4:
            data[place : place + length] = draw.choice(WORDS)
        elif kind == 5:
            data[place:place] = data[place : place + length] * draw.choice((1, 2, 50))
        elif draw.random() < 0.3:
            del data[place:]
    return bytes(data)


def spoil_values(tree, draw):
    """Nested lists and dictionaries with one to three values or keys changed."""
    tree = json.loads(json.dumps(tree))
    for _ in range(draw.choice((1, 1, 2, 3))):
        inner, path = tree, None
        while isinstance(inner, dict | list) and inner and (path is None or draw.random() < 0.75):
            holder = inner
            path = draw.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
            inner = inner[path]
        if path is None:
            return copy.deepcopy(draw.choice(ODD))
        kind = draw.randrange(6)
        if kind == 0:
            del holder[path]
        elif kind == 1 and isinstance(holder, dict):
            holder[draw.choice(("", "x", f"{path}x", "\x1b", "a.b"))] = inner
        else:
            holder[path] = copy.deepcopy(draw.choice(ODD))  # as later changes may lie within it
    return tree


def watch(folder):
    """Note whatever is opened elsewhere, or started, from now on; returns the notes."""
    notes, own = [], (os.path.realpath(folder), os.path.realpath(tempfile.gettempdir()) + "/torch")

    def look(event, arguments):
        if event in FORBIDDEN:
            notes.append(f"{event} {arguments}")
        elif event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            path, mode = os.path.realpath(os.fsdecode(arguments[0])), arguments[1] or "r"
            writes = any(letter in mode for letter in "wax+")
            named = os.path.basename(path) == WEIGHTS  # of a run that settings may name, anywhere
            known = path.startswith(own) or (
                (named or path.startswith((*ALLOWED, SOURCE)))
                and not writes
                and path != "/etc/passwd"
            )
            if not known:
                notes.append(f"open {path} {mode}")

    sys.addaudithook(look)
    return notes


def run_case(case, reader, folder, notes):
    """Why the case is a finding; None where it is none."""
    draw = case.draw
    notes.clear()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = reader.write_spoilt(folder, draw, spoil, spoil_values)
            reader.read(path)
    except (ConcontError, OSError):
        pass
    except TooLong:
        return f"longer than {SECONDS} s"
    except BaseException:
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "; ".join(notes) or None


def stop(_signal, _frame):
    raise TooLong


def run_all(names, seed, cases, only=None):
    """Run cases of these readers in this process; prints findings, returns how many."""
    readers = {name: fuzz_readers.READERS[name] for name in names}
    found = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["CONCONT_CACHE"] = str(folder / "cache")
        os.chdir(folder)
        for name, reader in readers.items():
            (folder / name).mkdir()
            reader.prepare(folder / name)
        notes = watch(folder)
        signal.signal(signal.SIGALRM, stop)
        limit_memory()
        for name, reader in readers.items():
            for number in range(cases) if only is None else (only,):
                case = Case(seed, name, number)
                print(f"at {case}", file=sys.stderr, flush=True)
                problem = run_case(case, reader, folder / name, notes)
                if problem is not None:
                    found += 1
                    print(f"FOUND {case}\n{problem}", flush=True)
    return found


def limit_memory():
    """No more than so many bytes beyond what is taken by now."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))


def run_in_child(seed, cases, *names):
    """The same in a process of its own, whose death is a finding; returns how many there were."""
    words = [sys.executable, __file__, "--here", "--seed", str(seed)]
    words += [word for name in names for word in ("--reader", name)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*words, "--cases", str(cases)],
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        timeout=60 + cases * len(names) * SECONDS,
        check=False,
    )
    if done.returncode not in (0, FINDINGS):
        last = [line for line in done.stderr.splitlines() if line.startswith("at ")][-1:]
        where = last[0][3:] if last else f"{' '.join(names)}, before the first case"
        print(done.stdout, done.stderr[-2000:], sep="\n")
        print(f"FOUND {where}\nthe process died with {done.returncode}")
        return 1
    print(done.stdout, end="")
    return done.stdout.count("FOUND --seed")


def main():
    """Fixed seeds first, then a seed of the moment, which is printed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", action="append", choices=list(fuzz_readers.READERS))
    parser.add_argument("--cases", type=int, default=600, help="of each reader and seed")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--case", type=int, help="this one alone, in this process")
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    names = given.reader or list(fuzz_readers.READERS)
    seed = FIXED if given.seed is None else given.seed
    if given.here or given.case is not None:
        sys.exit(FINDINGS if run_all(names, seed, given.cases, given.case) else 0)
    own = random.SystemRandom().randrange(2, 10**9)
    runs = [(seed, given.cases)] + ([(own, given.cases // 4)] if given.seed is None else [])
    print(f"the seed of the random part: {own}" if given.seed is None else f"seed {seed}")
    found, total, began = 0, 0, time.perf_counter()
    for each, cases in runs:
        for name in names:
            found += run_in_child(each, cases, name)
            total += cases
    print(f"{total:,} cases, {found} findings, {time.perf_counter() - began:.0f} s")
    sys.exit(min(1, found))


if __name__ == "__main__":
    main()
