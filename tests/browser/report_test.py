"""Opens reports in a real browser. tests/browser/pages.cpp makes the pages."""
import base64
import struct
import subprocess
import tempfile
import unittest

from browser import Browser, chromium_for_tests
from given import PAGES, TEMPLATES

CHROMIUM = chromium_for_tests()
CHART = ".viewer .charts"


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="peakbench-pages-")
        for kind in ("tutorial", "hostile", "emulated", "program"):
            subprocess.run([PAGES, kind, TEMPLATES, f"{cls.folder.name}/{kind}"], check=True, stdout=subprocess.DEVNULL)
        cls.browser = Browser(CHROMIUM)
        cls.page = cls.browser.page()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def open(self, kind="tutorial", **how):
        self.page.open(f"{self.folder.name}/{kind}/report/index.html", **how)

    def open_chart(self, **how):
        self.open(**how)
        self.page.run("document.querySelector('.viewer').scrollIntoView({behavior: 'instant'})")
        if how.get("media") != "print":
            self.page.wait("document.querySelector('.viewer').dataset.drawMs")

    def chart_point(self, across, down=0.5):
        box = self.page.run(f"(() => {{ const b = document.querySelector('{CHART} canvas').getBoundingClientRect();"
                            "return [b.left, b.top, b.width, b.height]; })()")
        return box[0] + across * box[2], box[1] + down * box[3]

    def domain(self):
        self.page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return [float(end) for end in self.page.run("document.querySelector('.viewer').dataset.domain").split()]

    def press(self, button):
        self.page.run(f"document.querySelector('.viewer .{button}').click()")

    def choose(self, select, value):
        self.page.run(f"(() => {{ const s = document.querySelector('.viewer .{select}'); s.value = {value!r};"
                      "s.dispatchEvent(new Event('change')); })()")

    def test_loads_without_a_complaint_and_without_the_network(self):
        for kind in ("tutorial", "hostile", "emulated", "program"):
            for dark in (False, True):
                self.open(kind, dark=dark)
                self.page.run("document.querySelector('.viewer').scrollIntoView({behavior: 'instant'})")
                self.page.wait("document.querySelector('.viewer').dataset.drawMs")
                self.assertEqual(self.page.complaints(), [], kind)

    def test_tables_do_not_need_javascript(self):
        self.open(script=False)
        self.page.send("Emulation.setScriptExecutionDisabled", value=False)
        self.assertGreater(self.page.run("document.querySelectorAll('table.main tbody tr').length"), 10)
        self.assertTrue(self.page.run("document.querySelector('.viewer').hidden"))
        self.assertGreater(self.page.run("document.querySelectorAll('.multiple path').length"), 10)

    def test_a_heading_sorts_and_failed_cases_stay_last(self):
        self.open()
        names = "[...document.querySelector('table.main').tBodies[0].rows].map(r => r.querySelector('.stack').textContent)"
        before = self.page.run(names)
        press = "document.querySelectorAll('table.main thead th')[1].querySelector('button').click()"
        self.page.run(press)
        peaks = self.page.run("[...document.querySelectorAll('table.main')[0].querySelectorAll('td.peak')]"
                              ".map(c => parseFloat(c.textContent))")
        self.assertEqual(peaks, sorted(peaks))
        self.assertEqual(self.page.run(names)[-1], before[-1])
        self.assertEqual(self.page.run("document.querySelectorAll('table.main thead th')[1].ariaSort"), "ascending")
        self.page.run(press)
        self.page.run(press)
        self.assertEqual(self.page.run(names), before)

    def test_rows_are_filtered_by_words(self):
        self.open()
        names = "[...document.querySelector('table.main').tBodies[0].rows].filter(r => r.checkVisibility()).map(r => r.querySelector('.stack').textContent.replace(/\\s+/g, ''))"
        everything = self.page.run(names)
        field = "document.querySelector('.filter input')"
        if len(everything) < 6:
            self.assertIsNone(self.page.run(field))
            self.skipTest("no long table")

        def typed(words):
            self.page.run(f"(() => {{ const f = {field}; f.value = {words!r}; f.dispatchEvent(new Event('input')); }})()")
            return self.page.run(names)

        reference = everything[0]
        word = everything[1].split("+")[0].split(",")[0]
        self.assertEqual(typed(word.upper()), [name for name in everything if name == reference or word in name])
        self.assertEqual(typed(f"-{word}"), [name for name in everything if name == reference or word not in name])
        self.assertEqual(typed("there is no such row"), [reference])
        self.assertEqual(self.page.run("document.querySelector('.filter [role=status]').textContent.trim()"), f"1 of {len(everything)}")
        self.assertEqual(typed("  "), everything)

    def test_a_frame_of_a_flame_graph_says_its_bytes_to_pointer_and_keyboard(self):
        self.open("program")
        frames = "document.querySelectorAll('.flame .frame')"
        said = "document.querySelector('.flame .said').textContent"
        self.assertGreater(self.page.run(f"{frames}.length"), 10)
        self.assertEqual(self.page.run(f"[...{frames}].filter(f => !/ bytes\\), .* of the peak$/.test(f.querySelector('title').textContent)).length"), 0)
        self.page.run(f"{frames}[0].focus()")
        self.assertEqual(self.page.run(said), self.page.run(f"{frames}[0].getAttribute('aria-label')"))
        self.page.key("Tab")
        self.assertEqual(self.page.run(said), self.page.run(f"{frames}[1].getAttribute('aria-label')"))
        outer = self.page.run(f"[...{frames}].filter(f => f.getAttribute('y') === '0').reduce((sum, f) => sum + f.getBoundingClientRect().width, 0)")
        whole = self.page.run("document.querySelector('.flame > svg').getBoundingClientRect().width")
        self.assertAlmostEqual(outer / whole, 1, delta=0.01)

    def test_dark_is_dark(self):
        self.open(dark=True)
        self.assertEqual(self.page.run("getComputedStyle(document.body).backgroundColor"), "rgb(15, 19, 23)")
        self.open()
        self.assertEqual(self.page.run("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")

    def test_buttons_wheel_drag_and_keys_change_the_view(self):
        self.open_chart()
        whole = self.domain()
        self.press("zoom-in")
        closer = self.domain()
        self.assertAlmostEqual((closer[1] - closer[0]) * 2, whole[1] - whole[0], delta=1)
        x, y = self.chart_point(0.5)
        self.page.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.page.mouse("mouseMoved", x + 100, y, button="left", buttons=1)
        self.page.mouse("mouseReleased", x + 100, y, button="left", clickCount=1)
        self.assertLess(self.domain()[0], closer[0])
        self.page.click(*self.chart_point(0.5))
        self.page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300)
        self.page.wait(f"document.querySelector('.viewer').dataset.domain !== '{closer[0]:.2f} {closer[1]:.2f}'")
        self.page.key("Home")
        self.assertEqual(self.domain(), whole)
        self.page.key("+")
        self.assertLess(self.domain()[1] - self.domain()[0], whole[1] - whole[0])
        self.press("zoom-step")
        step = self.domain()
        self.assertAlmostEqual((step[1] - step[0]) / (whole[1] - whole[0]), 1 / 3, delta=0.1)
        self.assertEqual(self.page.complaints(), [])

    def test_the_address_shows_the_same_again(self):
        self.open_chart()
        rows = self.page.run("[...document.querySelector('.viewer .pick').options].map(option => option.value)")
        self.choose("pick", rows[1])
        self.choose("beside", rows[0])
        self.page.wait(f"document.querySelector('.viewer').dataset.ready === '{rows[1]} {rows[0]}'")
        self.choose("as", "allocations")
        self.press("zoom-in")
        self.page.click(*self.chart_point(0.4))
        self.page.wait("location.hash.includes('event=')")
        address, domain = self.page.run("location.hash"), self.domain()
        event = self.page.run("document.querySelector('.viewer .moment').dataset.event")
        self.page.open(f"{self.folder.name}/emulated/report/index.html")  # so that it is no jump within the page
        self.page.open(f"{self.folder.name}/tutorial/report/index.html{address}")
        self.page.wait("document.querySelector('.viewer .moment').dataset.event")
        self.assertEqual(self.page.run("document.querySelector('.viewer').dataset.ready"), f"{rows[1]} {rows[0]}")
        self.assertEqual(self.page.run("document.querySelector('.viewer .as').value"), "allocations")
        self.assertEqual(self.page.run("document.querySelector('.viewer .moment').dataset.event"), event)
        for now, then in zip(self.domain(), domain):
            self.assertAlmostEqual(now, then, delta=0.1)
        # What somebody typed is not in the page: the chart is as it is without it.
        self.page.open(f"{self.folder.name}/emulated/report/index.html")
        self.page.open(f"{self.folder.name}/tutorial/report/index.html#chart=1&case=<b>&along=nothing&from=9&to=-3&event=7.99999999")
        self.page.run("document.querySelector('.viewer').scrollIntoView({behavior: 'instant'})")
        self.page.wait("document.querySelector('.viewer').dataset.drawMs")
        self.assertEqual(self.page.run("document.querySelector('.viewer').dataset.ready"), rows[0])
        self.assertEqual(self.page.complaints(), [])

    def test_a_chart_is_saved_as_a_picture(self):
        self.open_chart()
        self.page.run("HTMLAnchorElement.prototype.click = function () { window.saved = [this.download, this.href]; }")
        self.press("save")
        name, address = self.page.run("window.saved")
        self.assertRegex(name, r"^[\w.+-]+\.png$")
        self.assertTrue(address.startswith("data:image/png;base64,"))
        picture = base64.b64decode(address.split(",")[1])
        width, height = struct.unpack(">II", picture[16:24])
        chart = self.page.run("(() => { const b = document.querySelector('.viewer .chart canvas').getBoundingClientRect(); return [b.width, b.height]; })()")
        self.assertAlmostEqual(width, 2 * chart[0], delta=2)
        self.assertGreater(height, 2 * chart[1])
        # What an emulated card made is called so in the picture, too.
        self.page.open(f"{self.folder.name}/emulated/report/index.html")
        self.page.run("document.querySelector('.group').querySelector('.setting').scrollIntoView()")
        headings = self.page.run("[...document.querySelectorAll('.group')].map(group => Viewer.prototype.heading.call({group}))")
        self.assertTrue(any("emulated card: bytes only, no times" in heading for heading in headings), headings)

    def test_a_click_lists_what_is_alive(self):
        self.open_chart()
        self.page.click(*self.chart_point(0.4))
        self.page.wait("document.querySelector('.moment table.largest tr')")
        text = self.page.run("document.querySelector('.moment').textContent")
        self.assertIn("alive in", text)
        self.assertRegex(text, r"encoder\.layers\.\*[a-z0-9_.*]* ×\d+", "layers are one row")
        # The categories sum to the total.
        total = self.page.run("parseFloat(document.querySelector('.moment h4 strong').textContent)")
        parts = self.page.run("[...document.querySelectorAll('.moment .chips b')].map(b => parseFloat(b.textContent) || 0)")
        self.assertAlmostEqual(sum(parts), total, delta=0.004)
        self.page.run("document.querySelector('.alive-tree summary').click()")
        self.page.wait("document.querySelectorAll('.alive-tree ul li').length")

    def test_the_peak_of_the_chart_is_the_peak_of_the_table(self):
        self.open_chart()
        self.press("zoom-peak")
        self.page.wait("document.querySelector('.moment h4')")
        self.assertEqual(self.page.run("document.querySelector('.moment h4 strong').textContent"),
                         self.page.run("document.querySelector('td.peak').textContent.trim() + ' GiB'"))

    def test_reserved_stands_above_allocated(self):
        self.open("emulated")
        viewer = "[...document.querySelectorAll('.viewer')].at(-1)"
        self.page.run(f"{viewer}.scrollIntoView({{behavior: 'instant'}})")
        self.page.wait(f"{viewer}.dataset.drawMs")
        box = self.page.run(f"(() => {{ const b = {viewer}.querySelector('canvas').getBoundingClientRect();"
                            "return [b.left + b.width / 2, b.top + b.height / 2]; })()")
        self.page.click(*box)
        self.page.wait(f"{viewer}.querySelector('.tip .held b')")
        figures = [float(text) for text in self.page.run(f"[...{viewer}.querySelectorAll('.tip .held b')].map(b => b.textContent)")]
        allocated = float(self.page.run(f"{viewer}.querySelector('.tip strong').textContent").split()[0])
        self.assertAlmostEqual(figures[0] - figures[1], allocated, delta=0.002)
        self.assertIn("of it idle", self.page.run(f"{viewer}.querySelector('.moment .held').textContent"))

    def test_without_a_mouse(self):
        """Tab to a small picture, Enter shows it large; in the chart Enter and Shift with arrows choose moments, and say them."""
        self.open_chart()
        self.page.run("document.querySelectorAll('.multiple')[1].focus()")
        self.page.key("Enter")
        second = self.page.run("document.querySelectorAll('.multiple')[1].dataset.row")
        self.page.wait(f"document.querySelector('.viewer').dataset.ready === '{second}'")
        self.page.run(f"document.querySelector('{CHART}').focus()")
        self.page.key("Enter")
        self.page.wait("document.querySelector('.moment h4')")
        said = self.page.run("document.querySelector('.spoken').textContent")
        self.assertRegex(said, r"^\S+, event [\d,]+, .* of step \d+: [\d.]+ GiB; ")
        event = int(self.page.run("document.querySelector('.moment').dataset.event"))
        self.page.key("ArrowRight", shift=True)
        after = int(self.page.run("document.querySelector('.moment').dataset.event"))
        self.assertGreater(after, event)
        self.page.key("ArrowLeft", shift=True)
        self.assertEqual(int(self.page.run("document.querySelector('.moment').dataset.event")), event)
        self.assertEqual(self.page.complaints(), [])

    def test_everything_has_a_name_for_a_screen_reader(self):
        for kind in ("tutorial", "emulated"):
            self.open_chart(kind=kind)
            self.press("zoom-peak")
            nameless = [role for role, name in self.page.accessible()
                        if role in ("button", "link", "image", "img", "combobox", "application", "region", "columnheader") and not name]
            self.assertEqual(nameless, [], kind)
            levels = self.page.run("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map(h => +h.tagName[1])")
            self.assertEqual(levels[0], 1)
            for before, level in zip(levels, levels[1:]):
                self.assertLessEqual(level, before + 1, levels)

    def test_on_paper(self):
        self.open_chart(media="print", dark=False)
        hidden = "getComputedStyle(document.querySelector('{}')).display === 'none'"
        self.assertTrue(self.page.run(hidden.format(".viewer")))
        self.assertFalse(self.page.run(hidden.format(".multiples")))
        self.assertEqual(self.page.run("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.page.send("Emulation.setEmulatedMedia", media="")
        pages = self.page.send("Page.printToPDF", printBackground=True)["data"]
        self.assertGreater(len(pages), 20000)

    def test_two_cases_on_one_axis(self):
        self.open_chart()
        rows = self.page.run("[...document.querySelectorAll('.viewer')[0].querySelectorAll('.pick option')].map(o => o.value)")
        self.choose("beside", rows[1])
        self.page.wait(f"document.querySelectorAll('{CHART}')[0].querySelectorAll('canvas').length === 2")
        self.choose("along", "phases")
        self.assertAlmostEqual(self.domain()[1], 3, delta=0.01)
        self.press("zoom-in")
        self.page.click(*self.chart_point(0.5))
        self.assertEqual(self.page.complaints(), [])

    def test_allocations_have_shapes(self):
        self.open_chart()
        before = self.page.run(f"document.querySelector('{CHART} canvas').toDataURL()")
        self.choose("as", "allocations")
        self.page.wait(f"document.querySelector('{CHART} canvas').toDataURL() !== {before!r}")
        self.page.mouse("mouseMoved", *self.chart_point(0.5, 0.8))
        self.page.wait("document.querySelector('.tip p')")
        self.assertIn("GiB", self.page.run("document.querySelector('.tip p').textContent"))

    def test_an_emulated_card_has_no_time_axis(self):
        self.open("emulated")
        self.page.run("[...document.querySelectorAll('.viewer')].at(-1).scrollIntoView({behavior: 'instant'})")
        self.page.wait("[...document.querySelectorAll('.viewer')].at(-1).dataset.drawMs")
        self.assertTrue(self.page.run("[...document.querySelectorAll('.viewer')].at(-1).querySelector('[value=time]').disabled"))

    def test_hostile_names_stay_text(self):
        self.open("hostile")
        self.assertEqual(self.page.run("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.page.run("document.querySelectorAll('a[href^=\"javascript\"]').length"), 0)
        self.assertEqual(self.page.complaints(), [])
