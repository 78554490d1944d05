"""How quickly image files become mapped pixels, against the decoder's own speed on all cores.

    python benchmarks/image_cache.py --images 5000 --rounds 3

Makes that many JPEGs of 500 x 375, then in turn, several times: `load_images` with an empty cache,
and a bare loop of `read_image` over the same files in as many processes as there are cores, each
with its share. Prints images/s of both, processor milliseconds an image of both (which say more
where others use the cores), the medians of their ratios, and the seconds of a second start. The
files lie in the page cache. What the processes need to start counts on our side alone.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from concont.cores import count_cores
from concont.images.cache import load_images

SIDES, SIZE = (500, 375), (224, 224)
N_DISTINCT = 200  # pictures; the others are these, turned and shifted, so that no two are the same
BARE_LOOP = """
import sys, time
from concont.images.files import read_image
paths = sys.stdin.read().splitlines()
began = time.perf_counter(), time.process_time()
for path in paths:
    read_image(path, (224, 224), 3, "crop")
print(time.perf_counter() - began[0], time.process_time() - began[1])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to put them; a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        paths = make_pictures(Path(folder) / "pictures", options.images)
        measure(paths, Path(folder), options.rounds)


def measure(paths: list[Path], folder: Path, rounds: int) -> None:
    cores = count_cores()
    size = sum(path.stat().st_size for path in paths) / len(paths) / 1000
    print(f"{len(paths)} JPEGs of {SIDES[0]} x {SIDES[1]}, {size:.0f} kB each; {cores} cores")
    ratios = []
    for n in range(rounds):
        bare_rate, bare_ms = time_bare_loop(paths, cores)
        place = folder / f"cache{n}"
        rate, ms = time_load(paths, place)
        began = time.perf_counter()
        load_images(paths, SIZE, 3, "crop", place)
        second = time.perf_counter() - began
        ratios.append((rate / bare_rate, bare_ms / ms))
        print(
            f"bare loop {bare_rate:.0f} images/s, {bare_ms:.2f} ms of a core an image; load_images "
            f"{rate:.0f} images/s, {ms:.2f} ms; second start {second:.2f} s",
            flush=True,
        )
        for path in place.glob("*.npy"):
            path.unlink()
    by_clock, by_core = (100 * statistics.median(column) for column in zip(*ratios, strict=True))
    print(f"of the decoder's own speed: {by_clock:.0f} % by the clock, {by_core:.0f} % by cores")


def time_load(paths: list[Path], place: Path) -> tuple[float, float]:
    """Images a second, and milliseconds of a core an image, of all processes together."""
    began, used = time.perf_counter(), sum(os.times()[:4])
    load_images(paths, SIZE, 3, "crop", place)
    seconds, used = time.perf_counter() - began, sum(os.times()[:4]) - used
    return len(paths) / seconds, 1000 * used / len(paths)


def time_bare_loop(paths: list[Path], cores: int) -> tuple[float, float]:
    """The same of the bare loop, each process at its own pace."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", BARE_LOOP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # as ours: the system shares the cores among sessions
        )
        for _ in range(cores)
    ]
    shares = [paths[k::cores] for k in range(cores)]
    for share, process in zip(shares, processes, strict=True):
        process.stdin.write("\n".join(map(str, share)))
        process.stdin.close()
    times = [tuple(map(float, process.stdout.read().split())) for process in processes]
    for process in processes:
        process.wait()  # else its time would count as ours
    rate = sum(len(share) / clock for share, (clock, _) in zip(shares, times, strict=True))
    return rate, 1000 * sum(used for _, used in times) / len(paths)


def make_pictures(folder: Path, count: int) -> list[Path]:
    """Smoothed noise of several scales with shapes on it, about as large as photographs are."""
    folder.mkdir()
    stream = np.random.RandomState(0)
    pictures = [draw_picture(stream) for _ in range(min(count, N_DISTINCT))]
    paths = []
    for k in range(count):
        pixels = np.roll(pictures[k % len(pictures)], 7 * (k // len(pictures)), axis=1)
        paths.append(folder / f"{k:06d}.jpg")
        Image.fromarray(pixels).save(paths[-1], quality=85 + k % 6)
    return paths


def draw_picture(stream: np.random.RandomState) -> np.ndarray:
    width, height = SIDES
    total = np.zeros((height, width, 3))
    for cells, weight in ((4, 0.5), (16, 0.25), (64, 0.15), (250, 0.1)):
        noise = stream.randint(0, 256, (cells * 3 // 4, cells, 3)).astype(np.uint8)
        total += weight * np.asarray(Image.fromarray(noise).resize(SIDES, Image.Resampling.BICUBIC))
    image = Image.fromarray(total.clip(0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    for _ in range(8):
        x, y = stream.randint(0, width), stream.randint(0, height)
        box = (x, y, x + stream.randint(10, 150), y + stream.randint(10, 150))
        shape = pen.ellipse if stream.rand() < 0.5 else pen.rectangle
        shape(box, fill=tuple(map(int, stream.randint(0, 256, 3))))
    return np.asarray(image)


if __name__ == "__main__":
    main()
