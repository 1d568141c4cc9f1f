"""Opens a comparison in a real browser. tests/browser/pages.cpp makes the runs."""
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from browser import Browser, chromium_for_tests
from given import PAGES, PEAKBENCH, TEMPLATES

CHROMIUM = chromium_for_tests()


def make_comparison(folder):
    """NEW is BASE in which the first case has become as large as the second: figures and trace."""
    subprocess.run([PAGES, "tutorial", TEMPLATES, f"{folder}/base"], check=True, stdout=subprocess.DEVNULL)
    shutil.copytree(f"{folder}/base", f"{folder}/new")
    path = Path(folder, "new/run.json")
    run = json.loads(path.read_text(encoding="utf-8"))
    with_memory = [case for case in run["cases"] if case["status"] == "ok" and case["memory"]]
    for key in ("memory", "ranks"):
        with_memory[0][key], with_memory[1][key] = with_memory[1][key], with_memory[0][key]
    path.write_text(json.dumps(run), encoding="utf-8")
    done = subprocess.run([PEAKBENCH, "gate", "base", "new", "--out", "pages"], cwd=folder, stdout=subprocess.DEVNULL,
                          check=False)
    assert done.returncode == 4, done.returncode
    return f"{folder}/pages/comparison.html"


class Comparison(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="peakbench-comparison-")
        cls.path = make_comparison(cls.folder.name)
        cls.browser = Browser(CHROMIUM)
        cls.page = cls.browser.page()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def open_chart(self, **how):
        self.page.open(self.path, **how)
        self.page.run("document.querySelector('.viewer').scrollIntoView({behavior: 'instant'})")
        self.page.wait("document.querySelector('.viewer').dataset.drawMs")

    def test_both_runs_are_on_one_axis(self):
        self.open_chart()
        self.assertEqual(self.page.run("document.querySelector('.viewer').querySelectorAll('canvas').length"), 1)
        self.assertEqual(self.page.run("document.querySelector('.viewer .chart-name').textContent"), "NEW, BASE as a line")
        self.assertEqual(self.page.run("document.querySelector('.viewer .along').value"), "phases")
        with_line = self.page.run("document.querySelector('.viewer canvas').toDataURL()")
        self.page.run("(() => { const s = document.querySelector('.viewer .beside'); s.value = '';"
                      "s.dispatchEvent(new Event('change')); })()")
        self.page.wait(f"document.querySelector('.viewer canvas').toDataURL() !== {with_line!r}")
        self.assertEqual(self.page.complaints(), [])

    def test_without_javascript_both_are_drawn(self):
        self.page.open(self.path, script=False)
        for line in ("stroke-base", "stroke-now"):
            self.assertGreater(self.page.run(f"document.querySelector('.{line}').getBoundingClientRect().height"), 50)

    def test_dark_and_light_load_without_a_complaint(self):
        for dark in (False, True):
            self.open_chart(dark=dark)
            self.assertEqual(self.page.complaints(), [])
