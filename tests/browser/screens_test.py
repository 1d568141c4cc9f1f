"""What commands print on terminals of three widths, with colour and without: it is within the window, and the first screen is short.

Pictures of the screens are kept in PICTURES, to be looked at.
"""
import html
import itertools
import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path

import comparison_test
import pytest
from browser import Browser, chromium_for_tests
from given import ORACLE, PEAKBENCH, PICTURES
from terminal import on_terminal

pyte = pytest.importorskip("pyte", reason="there is no pyte (ci/packages --tests installs it)")
CHROMIUM = chromium_for_tests()

TUTORIAL = Path(__file__).resolve().parents[2] / "docs/tutorials/1-does-my-script-fit.md"
SMALL = ["--model", "vit-b-16,layers=1,image=64"]
SCREENS = {
    "emulate": ["emulate", "--card", "t4-16gb", "train.py"],
    "emulate-too-large": ["emulate", "--card", "t4-16gb", "train.py", "--batch", "32"],
    "trace": ["trace", "--card", "t4-16gb", "--out", "new", "train.py"],
    "fit": ["fit", *SMALL, "--strategy", "baseline", "--strategy", "checkpointing", "--card", "h100-80gb,memory=2GiB", "--out", "new"],
    "run": ["run", *SMALL, "--strategy", "baseline", "--strategy", "checkpointing", "--device", "emulated:h100-80gb", "--out", "new"],
    "compare": ["compare", "base", "new"],
    "list-strategies": ["list", "strategies"],
    "list-devices": ["list", "devices"],
    "help": ["--help"],
    "wrong-word": ["comprae", "base", "new"],
}
WIDTHS = (80, 100, 200)
FIRST_SCREEN = 14  # lines, at 100 columns, beside the program's own
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 8px; background: #1e1e1e; width: max-content }}
pre {{ margin: 0; font: 13px/17px monospace; color: #ddd; width: {columns}ch; border-right: 1px dotted #666 }}
</style><pre>{text}</pre>"""


def screen_of(text, columns):
    """A terminal's screen once the text was written to it, long enough for all of it."""
    screen = pyte.Screen(columns, 4 * text.count("\n") + 40)
    screen.set_mode(pyte.modes.LNM)  # a new line begins at the left
    pyte.Stream(screen).feed(text)
    return screen


def page_of(screen):
    """The screen in HTML; names of colours are those of CSS."""
    lines = []
    for y in range(screen.cursor.y + 1):
        cells = [screen.buffer[y][x] for x in range(screen.columns)]
        spans = [("".join(cell.data for cell in same), colour, "bold" if bold else "normal")
                 for (colour, bold), same in itertools.groupby(cells, lambda cell: (cell.fg.replace("default", "inherit"), cell.bold))]
        lines.append("".join(f'<span style="color: {colour}; font-weight: {weight}">{html.escape(text)}</span>' for text, colour, weight in spans))
    return PAGE.format(columns=screen.columns, text="\n".join(lines))


class Screens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="peakbench-screens-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        script = re.search(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)[1]
        (cls.folder / "train.py").write_text(script, encoding="utf-8")
        (cls.folder / "compared").mkdir()
        comparison_test.make_comparison(cls.folder / "compared")
        browser = Browser(CHROMIUM)
        cls.addClassCleanup(browser.close)
        cls.page = browser.page()
        PICTURES.mkdir(parents=True, exist_ok=True)

    def written(self, name, columns, **environment):
        folder = self.folder / "compared" if name == "compare" else self.folder
        if name != "compare":
            shutil.rmtree(folder / "new", ignore_errors=True)
        plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
        return on_terminal([PEAKBENCH, *SCREENS[name]], columns, cwd=folder,
                           env={**plain, "TERM": "xterm", "PEAKBENCH_PYTHON": ORACLE, **environment})[1]

    def photograph(self, screen, name):
        (self.folder / "screen.html").write_text(page_of(screen), encoding="utf-8")
        self.page.open(self.folder / "screen.html", width=8 * screen.columns + 24, height=17 * screen.cursor.y + 40)
        self.page.picture(PICTURES / f"terminal-{name}.png")

    def test_every_screen(self):
        for name, columns in itertools.product(SCREENS, WIDTHS):
            with self.subTest(name, columns=columns):
                self.photograph(screen_of(self.written(name, columns), columns), f"{name}-{columns}")
                text = self.written(name, columns, NO_COLOR="1")
                self.photograph(screen_of(text, columns), f"{name}-{columns}-plain")
                self.assertNotIn("\x1b", text)
                if name.startswith(("emulate", "trace")):
                    text = text[re.search(r"^(Fits|Does not fit) ", text, re.MULTILINE).start():]  # the program's own comes first
                    if columns == 100:
                        self.assertLessEqual(text.strip().count("\n") + 1, FIRST_SCREEN)
                self.assertEqual([line for line in text.split("\n") if len(line) > columns], [])
