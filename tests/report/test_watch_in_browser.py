"""The live page as a browser shows it."""

import signal
import subprocess
import time

from browser import needs_browser
from processes import COMMAND, ENVIRONMENT

pytestmark = needs_browser


def test_watching_follows_a_run_that_trains(visit, toy_npz, tmp_path):
    """Served by one process while another trains; scroll and zoom stay where they were."""
    sets = ["model.width=4", "train.evaluate_every=1", "train.batch_size=16", "model.name=small"]
    words = ["--data", str(toy_npz), "--epochs", "60", "--out", "run", "--device", "cpu"]
    words += [word for each in sets for word in ("--set", each)]
    options = {"cwd": tmp_path, "env": ENVIRONMENT, "text": True}
    watch = subprocess.Popen(
        [*COMMAND, "watch", "run", "--port", "0", "--no-open"], **options, stdout=subprocess.PIPE
    )
    train = None
    try:
        watch.stdout.readline()
        url = watch.stdout.readline().split(" on ")[1].split(";")[0]
        seen = visit().open(url)
        assert "Waiting for a run" in seen.page.text_content("h1")
        train = subprocess.Popen([*COMMAND, "train", *words], **options, stdout=subprocess.DEVNULL)
        wait_for(lambda: list(tmp_path.glob("run/metrics.jsonl")), pause=0.01)
        train.send_signal(signal.SIGSTOP)  # else it may have ended before the page is looked at
        plot = "figure[data-chart='accuracy'] .plot"
        seen.page.wait_for_selector(f"{plot} .main-svg", timeout=60_000)
        seen.page.locator(plot).evaluate("plot => Plotly.relayout(plot, {'xaxis.range': [0, 99]})")
        seen.page.evaluate("scrollTo({top: 150, behavior: 'instant'})")
        first = count_points(seen, plot)
        train.send_signal(signal.SIGCONT)
        wait_for(lambda: count_points(seen, plot) > first)
        assert seen.page.evaluate("scrollY") == 150
        assert seen.page.locator(plot).evaluate("plot => plot.layout.xaxis.range") == [0, 99]
        assert train.wait(120) == 0
        wait_for(lambda: "Accuracy so far" not in seen.page.text_content("#summary"))
        wait_for(lambda: count_points(seen, plot) == 60)
        assert seen.said == []
        assert all(address.startswith(url) or address == "data:," for address in seen.asked)
    finally:
        for process in (train, watch):
            if process is not None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                process.communicate(timeout=20)
    assert watch.returncode == 0


def count_points(seen, plot):
    return seen.page.locator(plot).evaluate("plot => plot.data[0].x.length")


def wait_for(condition, seconds=60, pause=0.2):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(pause)
