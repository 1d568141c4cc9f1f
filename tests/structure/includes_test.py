"""Files include what tests/structure/modules.toml lets their module use; every directory is there, and the modules form no ring."""

import unittest

import modules as structure

MODULES = """
[low]
what = "a"
uses = []

[high]
what = "b"
libtorch = "no"
uses = ["low"]

["plugins/NAME"]
what = "c"
uses = ["low"]

[tests]
what = "d"
uses = "anything"
"""


class TheModules(unittest.TestCase):
    def setUp(self):
        self.allowed = structure.allowed(structure.read(MODULES))

    def test_are_read_with_what_each_may_use(self):
        self.assertEqual(self.allowed, {"low": set(), "high": {"low"}, "plugins/NAME": {"low"}, "tests": None})

    def test_refuse_a_use_of_what_is_none(self):
        with self.assertRaisesRegex(structure.TableError, "high may use lower, which is not in modules.toml"):
            structure.read(MODULES.replace('"no"\nuses = ["low"]', '"no"\nuses = ["lower"]'))

    def test_are_a_table_of_the_page(self):
        page = structure.with_table("before\n\n| directory | what it does | LibTorch |\n|---|\n| old |\n\nafter\n", structure.read(MODULES))
        self.assertIn("\n| `high` | b | no | `low` |\n", page)
        self.assertNotIn("old", page)
        self.assertTrue(page.endswith("| anything |\n\nafter\n"))

    def test_an_include_upwards_is_found(self):
        found = structure.trespasses(self.allowed, {"low/a.cpp": [(3, "low/a.h"), (4, "high/b.h")], "high/b.cpp": [(1, "low/a.h")]})
        self.assertEqual(found, ["low/a.cpp:4: low may not use high (high/b.h)"])

    def test_a_plugin_does_not_use_another_plugin(self):
        found = structure.trespasses(self.allowed, {"plugins/a/a.cpp": [(1, "plugins/a/a.h"), (2, "plugins/b/b.h")]})
        self.assertEqual(found, ["plugins/a/a.cpp:2: plugins/NAME may not use plugins/NAME (plugins/b/b.h)"])

    def test_a_file_outside_every_module_is_found(self):
        self.assertEqual(structure.trespasses(self.allowed, {"attic/a.cpp": []}),
                         ["attic/a.cpp: its directory is not in tests/structure/modules.toml"])

    def test_a_ring_is_found(self):
        self.assertEqual(structure.cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}), ["a", "b", "c", "a"])
        self.assertIsNone(structure.cycle({"a": {"b", "c"}, "b": {"c"}, "c": set(), "t": None}))


class TheRepository(unittest.TestCase):
    def setUp(self):
        self.modules = structure.read(structure.DATA.read_text(encoding="utf-8"))
        self.allowed = structure.allowed(self.modules)
        self.graph = structure.graph()

    def test_every_include_is_allowed(self):
        self.assertGreater(len(self.graph), 300)
        self.assertGreater(sum(map(len, self.graph.values())), 700)
        self.assertEqual(structure.trespasses(self.allowed, self.graph), [])

    def test_the_modules_form_no_ring(self):
        self.assertIsNone(structure.cycle(self.allowed))

    def test_nothing_is_allowed_that_no_file_needs(self):
        self.assertEqual(structure.unused(self.allowed, self.graph), [])

    def test_the_page_has_the_table(self):
        page = structure.PAGE.read_text(encoding="utf-8")
        self.assertEqual(page, structure.with_table(page, self.modules), "tests/structure/modules.py --write writes it")
