#!/usr/bin/env python3
"""Draws report.png, which README begins with: the top of a report as a browser shows it.

    docs/pictures/make.py [--program build/release/bin/peakbench]

The strategies of PyTorch's tutorial on ViT-L/16 and an emulated H100, run anew; needs Chromium. The page is the report's own, without its sentences.
"""
import argparse
import base64
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/browser"))
from browser import Browser, find_chromium  # noqa: E402

RUN = ["run", "--model", "vit-l-16", "--device", "emulated:h100-80gb", "--cudnn", "off",
       *(f"--strategy={one}" for one in ("baseline", "foreach-off", "fused-in-backward", "lora+checkpointing"))]
HIDDEN = ".whys, .ablation, .viewer, .timelines > :not(h3):not(.multiples) { display: none !important }"
FROM, TO = ".group h2", ".multiples"
WIDTH, MARGIN = 1060, 24


def draw(page, report, picture):
    page.open(report, width=WIDTH)
    page.run(f"document.head.insertAdjacentHTML('beforeend', `<style>{HIDDEN} .multiples {{ grid-template-columns: repeat(4, 1fr) }}</style>`)")
    top, bottom = page.run(f"[document.querySelector('{FROM}').getBoundingClientRect().top, document.querySelector('{TO}').getBoundingClientRect().bottom]")
    clip = {"x": 0, "y": top - MARGIN, "width": WIDTH, "height": bottom - top + MARGIN + 8, "scale": 2}
    shot = page.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    picture.write_bytes(base64.b64decode(shot["data"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(REPOSITORY / "build/release/bin/peakbench"))
    program = parser.parse_args().program
    chromium = find_chromium()
    if not chromium:
        sys.exit("docs/pictures/make.py: Chromium was not found; ci/packages --tests installs it")
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([program, *RUN, "--out", f"{scratch}/run", "--quiet"], check=True)
        browser = Browser(chromium)
        try:
            draw(browser.page(), f"{scratch}/run/report/index.html", HERE / "report.png")
        finally:
            browser.close()


main()
