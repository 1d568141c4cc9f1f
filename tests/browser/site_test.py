"""Browses a published site in a real browser. benchmarks/history_fill.cpp makes the history."""
import os
import subprocess
import tempfile
import unittest
import urllib.parse
from pathlib import Path

from browser import Browser, chromium_for_tests
from given import HISTORY_FILL, PEAKBENCH

CHROMIUM = chromium_for_tests(needs_charts=False)
LINKS = "[...document.querySelectorAll('a[href], link[rel=stylesheet]')].map(a => a.getAttribute('href'))"


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="peakbench-site-")
        cls.root = Path(cls.folder.name)
        cls.history = cls.root / "history.sqlite"
        cls.site = cls.root / "site"
        subprocess.run([HISTORY_FILL, cls.history, "130", "12", "4"], check=True, stdout=subprocess.DEVNULL)
        cls.publish(cls.site)
        cls.browser = Browser(CHROMIUM)
        cls.page = cls.browser.page()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    @classmethod
    def publish(cls, out):
        return subprocess.run([PEAKBENCH, "publish", "--history", cls.history, "--out", out, "--reports", "3"], check=True,
                              capture_output=True, text=True).stdout

    def pages(self):
        return sorted(str(path.relative_to(self.site)) for path in self.site.rglob("*.html"))

    def open(self, name, **how):
        self.page.open(self.site / name, **how)

    def trend(self):
        return next(name for name in self.pages() if name.startswith("trends/") and "cuda" in name)

    def test_every_link_of_every_page_leads_somewhere_and_nothing_complains(self):
        seen = set()
        for name in self.pages():
            self.open(name)
            self.assertEqual(self.page.complaints(), [], name)
            for link in self.page.run(LINKS):
                if link.startswith(("data:", "https:", "http:")):
                    continue
                self.assertFalse(link.startswith("/"), f"{name}: {link} is not relative")
                path, _, anchor = link.partition("#")
                target = (self.site / name).parent / urllib.parse.unquote(path) if path else self.site / name
                self.assertTrue(target.resolve().is_file(), f"{name}: {link} leads nowhere")
                self.assertTrue(target.resolve().is_relative_to(self.site.resolve()), f"{name}: {link} leads out")
                if anchor and (target, anchor) not in seen:
                    seen.add((target, anchor))
                    self.assertIn(f'id="{anchor}"', target.read_text(encoding="utf-8"), f"{name}: {link}")
        self.assertGreater(len(seen), 100)

    def test_every_page_is_reached_from_the_index(self):
        reached, waiting = set(), ["index.html"]
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            self.open(name)
            for link in self.page.run(LINKS):
                path = link.partition("#")[0]
                if path.endswith(".html") and ":" not in path:
                    waiting.append(os.path.relpath((self.site / name).parent / path, self.site))
        self.assertEqual(sorted(reached), self.pages())

    def test_the_style_sheet_is_used_and_dark_is_dark(self):
        self.open("index.html", dark=True)
        self.assertEqual(self.page.run("getComputedStyle(document.body).backgroundColor"), "rgb(15, 19, 23)")
        self.open("index.html")
        self.assertEqual(self.page.run("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")

    def test_without_javascript(self):
        self.open(self.trend(), script=False)
        self.page.send("Emulation.setScriptExecutionDisabled", value=False)
        self.assertEqual(self.page.run("document.querySelectorAll('script').length"), 0)
        self.assertGreater(self.page.run("document.querySelectorAll('.dot').length"), 20)
        self.assertGreater(self.page.run("document.querySelectorAll('table.points tr').length"), 20)

    def test_a_point_leads_to_its_run_by_mouse_and_by_keyboard(self):
        self.open(self.trend())
        box = self.page.run("(() => { const d = [...document.querySelectorAll('.dot')].at(-1); d.scrollIntoView({block: 'center'});"
                            "const b = d.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()")
        self.page.mouse("mouseMoved", *box)
        self.page.wait("getComputedStyle([...document.querySelectorAll('.dot')].at(-1), '::after').content !== 'none'")
        number = self.page.run("[...document.querySelectorAll('.dot')].at(-1).ariaLabel.match(/run (\\d+)/)[1]")
        self.page.leads_on(lambda: self.page.click(*box))
        self.assertIn(f"/runs/{number}/index.html", self.page.run("location.href"))
        self.open(self.trend())
        self.page.run("[...document.querySelectorAll('.dot')].at(-1).focus()")
        self.page.leads_on(lambda: self.page.key("Enter"))
        self.assertIn(f"/runs/{number}/index.html", self.page.run("location.href"))

    def test_breaks_failures_and_regressions_are_marked(self):
        self.open(self.trend())
        self.assertIn("LibTorch 2.10.0+cu130 → 2.11.0+cu130", self.page.run("document.querySelector('.breaks').textContent"))
        self.assertIn("driver CUDA 13.0 → CUDA 13.1", self.page.run("document.querySelector('.breaks').textContent"))
        failing = next(name for name in self.pages() if name.startswith("trends/llama"))
        self.open(failing)
        self.assertGreater(self.page.run("document.querySelectorAll('.dot.failed').length"), 0)
        self.assertGreater(self.page.run("document.querySelectorAll('.dot.worse').length"), 0)
        self.assertIn("Created earlier than the previous run", self.page.run("document.querySelector('main').textContent"))

    def test_publishing_again_changes_nothing(self):
        before = {path: path.stat().st_mtime_ns for path in self.site.rglob("*")}
        self.assertIn("0 files written", self.publish(self.site))
        self.assertEqual({path: path.stat().st_mtime_ns for path in self.site.rglob("*")}, before)
        self.publish(self.root / "again")
        done = subprocess.run(["diff", "-r", self.site, self.root / "again"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
