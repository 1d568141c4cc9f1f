"""Measures every kind of page in a real browser, at seven widths and on paper.

No word breaks inside, nothing is cut, nothing is wider than its window (layout.js). Pictures of the pages are kept in PICTURES, to be looked at.
"""
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import comparison_test
from browser import Browser, chromium_for_tests
from given import HISTORY_FILL, PAGES, PEAKBENCH, PICTURES, TEMPLATES

CHROMIUM = chromium_for_tests()
GOLDEN = Path(__file__).resolve().parents[1] / "golden/expected"

WIDTHS = (360, 390, 768, 1280, 1440, 1920, 2560)
PAPER = 718  # A4 without its margins, in CSS pixels
LOOK = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")
# A chart is drawn anew for another width in the frame that follows.
DRAWN = "[...document.querySelectorAll('canvas')].every((one) => one.getBoundingClientRect().right <= document.documentElement.clientWidth)"
OPEN = "document.querySelectorAll('details').forEach((d) => { d.open = !d.closest('.alive-tree'); })"


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"


def report_of(run_folder):
    """A report with today's templates, whoever wrote the run."""
    run(PEAKBENCH, "report", run_folder, "--format", "html", "--templates", TEMPLATES)
    return run_folder / "report/index.html"


def quickstart(folder):
    run(PEAKBENCH, "quickstart", "--out", folder / "quickstart")
    return report_of(folder / "quickstart")


def fit(folder):
    run(PEAKBENCH, "fit", "--model", "vit-b-16,layers=1,image=64", "--batch", "4", "--strategy", "baseline", "--strategy", "lora,rank=8+checkpointing",
        "--card", "rtx-3090-ti-24gb,rtx-4090-24gb,a100-40gb,h100-80gb,h200-141gb", "--check", "1", "--out", folder / "fit")
    return report_of(folder / "fit")


def made(kind):
    def page(folder):
        run(PAGES, kind, TEMPLATES, folder / kind)
        return folder / kind / "report/index.html"
    return page


def scaling(folder):
    sizes = [argument for size in (1, 2, 4, 8, 16, 32) for argument in ("--batch", size)]
    run(PEAKBENCH, "run", "--model", "vit-b-16,layers=1,image=64", "--strategy", "baseline", "--strategy", "lora", *sizes,
        "--device", "emulated:h100-80gb", "--no-ablation", "--out", folder / "scaling")
    return report_of(folder / "scaling")


def comparison(folder):
    (folder / "compared").mkdir()
    return Path(comparison_test.make_comparison(folder / "compared"))


def programs_compared(folder):
    run(PEAKBENCH, "compare", folder / "program", folder / "trainer", "--out", folder / "programs-compared", "--templates", TEMPLATES)
    return folder / "programs-compared/comparison.html"


def site(folder):
    if not (folder / "site").exists():
        run(HISTORY_FILL, folder / "history.sqlite", "40", "8", "4")
        run(PEAKBENCH, "publish", "--history", folder / "history.sqlite", "--out", folder / "site", "--reports", "1")
    return folder / "site"


def styled(path):
    """A golden page with the style sheets that it leaves out."""
    def page(folder):
        names = ["style.css", "comparison.css"] if path.name == "comparison.html" else ["style.css"]
        style = "".join(TEMPLATES.joinpath("html", name).read_text(encoding="utf-8") for name in names)
        text = re.sub(r"<style>.*?</style>", lambda _: f"<style>{style}</style>", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        (folder / f"{path.parent.name}.html").write_text(text, encoding="utf-8")
        return folder / f"{path.parent.name}.html"
    return page


# Which template makes the page, what it is called, and how it is made.
KINDS = [("html/index", "quickstart", quickstart), ("html/index", "fit", fit), ("html/index", "scaling", scaling),
         *(("html/index", kind, made(kind)) for kind in ("tutorial", "emulated", "program", "trainer", "hostile")),
         ("html/comparison", "comparison", comparison), ("html/comparison", "programs-compared", programs_compared),
         ("site/index", "site", lambda folder: site(folder) / "index.html"),
         ("site/runs", "site-runs", lambda folder: site(folder) / "runs/index.html"),
         ("site/trend", "site-trend", lambda folder: min((site(folder) / "trends").glob("*.html")))]
IN_PICTURES = ("quickstart", "trainer", "comparison", "site", "fit")


class Layout(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="peakbench-layout-")
        folder = Path(cls.folder.name)
        cls.pages = {name: page(folder) for _, name, page in KINDS}
        golden = sorted(path for path in GOLDEN.glob("*/*.html"))
        cls.pages |= {f"golden-{path.parent.name}": styled(path)(folder) for path in golden}
        cls.browser = Browser(CHROMIUM)
        cls.page = cls.browser.page()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def open(self, name, **how):
        self.page.open(self.pages[name], **how)

    def draw_chart(self):
        """False where the page has none."""
        if self.page.run("!document.querySelector('.js .viewer:not([hidden])')"):
            return False
        self.page.run("document.querySelector('.viewer').scrollIntoView({behavior: 'instant'})")
        self.page.wait("document.querySelector('.viewer').dataset.drawMs")
        return True

    def choose_a_moment(self):
        """What is alive at a moment is written by the page's script."""
        if not self.draw_chart():
            return
        self.page.run("document.querySelector('.viewer .charts').focus()")
        self.page.key("Enter")
        self.page.wait("document.querySelector('.moment h4')")

    def found(self, width, media=""):
        self.page.send("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=width < 600)
        self.page.send("Emulation.setEmulatedMedia", media=media)
        self.page.wait(DRAWN)
        return self.page.run(LOOK)

    def test_no_word_breaks_and_nothing_is_cut(self):
        for name in self.pages:
            self.open(name)
            self.choose_a_moment()
            self.page.run(OPEN)
            for width, media in (*((width, "") for width in WIDTHS), (PAPER, "print")):
                with self.subTest(page=name, width=width, media=media):
                    self.assertEqual(self.found(width, media), [])

    def test_no_chart_is_empty(self):
        """A chart along phases of a program, which has more kinds than a strategy's case, was."""
        for name in self.pages:
            self.open(name)
            if self.draw_chart():
                painted = self.page.run("[...document.querySelectorAll('.viewer canvas')].map((one) => one.getContext('2d')"
                                        ".getImageData(0, 0, one.width, one.height).data.filter((byte, i) => i % 4 === 3 && byte > 0).length"
                                        " / (one.width * one.height))")
                self.assertGreater(min(painted), 0.05, name)

    def test_every_template_of_a_page_is_measured(self):
        templates = {str(path.relative_to(TEMPLATES)).removesuffix(".html.mustache") for path in TEMPLATES.rglob("*.html.mustache")}
        self.assertEqual(templates, {template for template, _, _ in KINDS})

    def test_every_table_of_the_templates_is_on_a_page_that_is_measured(self):
        tables = {match for path in TEMPLATES.rglob("*.mustache") for match in re.findall(r'<table class="([^"{]+)"', path.read_text(encoding="utf-8"))}
        captions = {match for path in TEMPLATES.rglob("*.mustache") for match in re.findall(r"<caption>([^{<]+)", path.read_text(encoding="utf-8"))}
        pages = "".join(path.read_text(encoding="utf-8") for path in self.pages.values())
        self.assertEqual([table for table in sorted(tables) if f'class="{table}"' not in pages], [])
        self.assertEqual([caption for caption in sorted(captions) if f"<caption>{caption}" not in pages], [])

    def test_a_break_in_a_word_is_seen(self):
        """Each kind of fault is found where it is planted; the first is the one that the quick start's table had."""
        self.open("quickstart")
        for style, what in (("body { overflow-wrap: anywhere } .reliance { white-space: normal }", "breaks"),
                            ("main { width: 3000px }", "wider than its window"),
                            (".work .scroll { background: none; width: 200px } .work table { min-width: 900px }", " px in ")):
            self.page.run(f"(() => {{ const s = document.createElement('style'); s.id = 'broken'; s.textContent = {style!r}; document.head.append(s); }})()")
            self.assertTrue([one for one in self.found(1440) if what in one], what)
            self.page.run("document.querySelector('#broken').remove()")

    def test_pictures_for_the_eye(self):
        PICTURES.mkdir(parents=True, exist_ok=True)
        for name in IN_PICTURES:
            for width in (390, 1280, 1440, 1920):
                for dark in (False, True):
                    self.open(name, width=width, dark=dark)
                    self.draw_chart()
                    self.page.run("scrollTo(0, 0)")
                    self.page.picture(f"{PICTURES}/{name}-{width}{'-dark' if dark else ''}.png")
                    self.assertEqual(self.page.complaints(), [], name)
