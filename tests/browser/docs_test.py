"""A reader comes to the start page of the site of docs/ with a question, and has the answer in view after two clicks at most."""
import functools
import http.server
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from browser import Browser, chromium_for_tests

CHROMIUM = chromium_for_tests(needs_charts=False)
REPOSITORY = Path(__file__).resolve().parents[2]

# (what the start page says, the links to click, what is then read): by the table of questions, in any window.
BY_QUESTION = [
    ("Does my batch fit?", ["What fits"], "How large may the batch be on a GPU that I do not have?"),
    ("What is exact?", ["verdict"], "the same bytes"),
    ("Write a strategy", ["plugins"], "How do I measure a strategy or a model of my own?"),
    ("Write a strategy", ["Functions"], "A model and strategies in Python"),
    ("Gate a pull request", ["a script or a test suite"], "A gate for pull requests"),
    ("Gate a pull request", ["limits in pytest"], "Tests that limit device memory"),
    ("Gate a pull request", ["suites of strategies"], "before it is merged?"),
]
# By the navigation, where the window has a place for it.
BY_NAVIGATION = [
    ("How-to", ["How-to", "What fits a card"], "How large may the batch be on a GPU that I do not have?"),
    ("Explanation", ["Explanation", "The verdict"], "the same bytes"),
    ("How-to", ["How-to", "Write a strategy or a model"], "How do I measure a strategy or a model of my own?"),
    ("How-to", ["How-to", "Every night and pull request"], "before it is merged?"),
]
# The middle of the first link of this text that nothing covers, once it is in view.
LINK = """((text) => {
  for (const link of document.querySelectorAll('a[href]')) {
    if (link.innerText.trim() !== text || !link.checkVisibility()) continue;
    link.scrollIntoView({block: 'center', behavior: 'instant'});
    const box = link.getClientRects()[0], at = [box.left + box.width / 2, box.top + box.height / 2];
    if (link.contains(document.elementFromPoint(...at))) return at;
  }
})"""
IN_VIEW = """((text) => [...document.querySelectorAll('h1, h2, h3, p, td, strong, .md-tabs a')].some((one) => {
  const box = one.getBoundingClientRect();
  return one.checkVisibility() && one.innerText.includes(text) && box.bottom > 0 && box.top < innerHeight;
}))"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Docs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="peakbench-docs-")
        cls.addClassCleanup(folder.cleanup)
        made = subprocess.run([REPOSITORY / "ci/site", "--out", f"{folder.name}/site"], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=f"{folder.name}/site"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.shutdown)
        cls.start = f"http://127.0.0.1:{server.server_port}/"
        cls.browser = Browser(CHROMIUM)
        cls.addClassCleanup(cls.browser.close)
        cls.page = cls.browser.page()

    def click(self, text):
        at = self.page.run(f"{LINK}({text!r})")
        self.assertIsNotNone(at, f"no link {text!r} to be seen on {self.page.run('location.pathname')}")
        self.page.leads_on(lambda: self.page.click(*at))

    def follow(self, routes, width):
        for words, links, answer in routes:
            with self.subTest(words=words, links=links, width=width):
                self.assertLessEqual(len(links), 2)
                self.page.open(self.start, width=width)
                self.assertIn(words, self.page.run("document.body.innerText"))
                for link in links:
                    self.click(link)
                self.page.wait(f"{IN_VIEW}({answer!r})", seconds=5)

    def test_from_a_question(self):
        for width in (390, 1440):
            self.follow(BY_QUESTION, width)

    def test_from_the_navigation(self):
        self.follow(BY_NAVIGATION, 1440)

    def test_a_link_that_is_covered_or_missing_is_no_route(self):
        self.page.open(self.start)
        self.assertIsNone(self.page.run(f"{LINK}('What fits nowhere')"))
        self.page.run("document.body.insertAdjacentHTML('beforeend', '<div style=\"position: fixed; inset: 0; z-index: 99\"></div>')")
        self.assertIsNone(self.page.run(f"{LINK}('What fits')"))

    def test_nothing_is_asked_of_another_site(self):
        page = self.browser.page()  # a tab remembers what it has asked for
        page.open(self.start)
        page.wait("performance.getEntries().some((one) => one.name.endsWith('search_index.json'))")
        page.run("new Promise((done) => setTimeout(done, 500))")
        self.assertEqual([one for one in page.complaints() if not one.startswith(f"a request: {self.start}")], [])
