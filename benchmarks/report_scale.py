#!/usr/bin/env python3
"""A report of a trace of a million events: how long to make, how large, how quick in a browser.

    benchmarks/report_scale.py [--events N] [--build DIR] [--oracle PYTHON]

Prints one line a figure with its target. With --oracle (a Python with torch), times stock `_memory_viz.py trace_plot`
on the same events, too. Needs the tests' page maker (target peakbench_browser_pages) and Chromium.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "browser"))
from browser import Browser, find_chromium  # noqa: E402

TIMED = """new Promise(async done => {
  const viewer = document.querySelector('.viewer'), times = [];
  for (let i = 0; i < 12; ++i) {
    viewer.querySelector(i < 8 ? '.zoom-in' : '.zoom-out').click();
    await new Promise(frame => requestAnimationFrame(() => requestAnimationFrame(frame)));
    times.push(parseFloat(viewer.dataset.drawMs));
  }
  done(times);
})"""


def line(what, value, unit, target):
    print(f"{what:<44} {value:10.3f} {unit:<3} (target {target})")


def browser_figures(page_path):
    browser = Browser(find_chromium())
    try:
        page = browser.page()
        started = time.monotonic()
        page.open(str(page_path))
        page.run("document.querySelector('.viewer').scrollIntoView({behavior: 'instant'})")
        page.wait("document.querySelector('.viewer').dataset.drawMs", 60)
        line("browser: from opening to an interactive chart", time.monotonic() - started, "s", "2")
        line("browser: slowest redraw while zooming", max(page.run(TIMED)), "ms", "100")
        if complaints := page.complaints():
            print("\n".join(complaints))
    finally:
        browser.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--oracle", help="a Python that imports torch")
    options = parser.parse_args()
    build = Path(options.build)
    with tempfile.TemporaryDirectory(prefix="peakbench-scale-") as folder:
        seconds = subprocess.run([build / "bin" / "peakbench_browser_pages", "million", build / "share/peakbench/templates",
                                  folder, str(options.events)], check=True, capture_output=True, text=True).stdout
        page = Path(folder) / "report" / "index.html"
        clock, processor = map(float, seconds.split())
        line("report: from the trace to all files", clock, "s", "1")
        line("report: the same, processor time", processor, "s", "1")
        line("report: index.html", page.stat().st_size / 1e6, "MB", "8")
        if find_chromium():
            browser_figures(page)
        snapshot = Path(folder) / "cases" / "0" / "snapshot.pickle"
        if options.oracle and snapshot.exists():
            plot = Path(folder) / "plot.html"
            started, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([options.oracle, "-m", "torch.cuda._memory_viz", "trace_plot", snapshot, "-o", plot], check=True,
                           env={**os.environ})
            line("stock _memory_viz.py trace_plot", time.monotonic() - started, "s", "-")
            now = resource.getrusage(resource.RUSAGE_CHILDREN)
            line("the same, processor time", now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime, "s", "-")
            line("stock trace_plot's page", plot.stat().st_size / 1e6, "MB", "-")


if __name__ == "__main__":
    main()
