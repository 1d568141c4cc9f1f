"""Files include what the table in docs/explanation/architecture.md lets their room use; every room has its row, and the rows form no ring."""

import unittest

import rooms as house

TABLE = """
## Modules

| folder | what | LibTorch | may use |
|---|---|---|---|
| `low` | a | no | nothing |
| `high` | b | no | `low` |
| `plugins/NAME` | c | yes | `low` |
| `tests` | d | | anything |

## Next
| `not/a/room` | | | nothing |
"""


class TheTable(unittest.TestCase):
    def test_reads_rows_up_to_the_next_heading(self):
        self.assertEqual(house.table(TABLE), {"low": set(), "high": {"low"}, "plugins/NAME": {"low"}, "tests": None})

    def test_refuses_a_room_without_a_row_and_words_that_name_none(self):
        with self.assertRaisesRegex(house.TableError, "high may use lower, which has no row"):
            house.table(TABLE.replace("no | `low`", "no | `lower`"))
        with self.assertRaisesRegex(house.TableError, "names no room"):
            house.table(TABLE.replace("no | `low`", "no | all above"))

    def test_an_include_upwards_is_found(self):
        found = house.trespasses(house.table(TABLE), {"low/a.cpp": [(3, "low/a.h"), (4, "high/b.h")], "high/b.cpp": [(1, "low/a.h")]})
        self.assertEqual(found, ["low/a.cpp:4: low may not use high (high/b.h)"])

    def test_a_plugin_does_not_use_another_plugin(self):
        found = house.trespasses(house.table(TABLE), {"plugins/a/a.cpp": [(1, "plugins/a/a.h"), (2, "plugins/b/b.h")]})
        self.assertEqual(found, ["plugins/a/a.cpp:2: plugins/NAME may not use plugins/NAME (plugins/b/b.h)"])

    def test_a_file_outside_every_room_is_found(self):
        self.assertEqual(house.trespasses(house.table(TABLE), {"attic/a.cpp": []}),
                         ["attic/a.cpp: its folder has no row in the table of docs/explanation/architecture.md"])

    def test_a_ring_is_found(self):
        self.assertEqual(house.cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}), ["a", "b", "c", "a"])
        self.assertIsNone(house.cycle({"a": {"b", "c"}, "b": {"c"}, "c": set(), "t": None}))


class TheHouse(unittest.TestCase):
    def setUp(self):
        self.rooms = house.table((house.REPOSITORY / "docs/explanation/architecture.md").read_text(encoding="utf-8"))
        self.graph = house.graph()

    def test_every_include_is_allowed(self):
        self.assertGreater(len(self.graph), 300)
        self.assertGreater(sum(map(len, self.graph.values())), 700)
        self.assertEqual(house.trespasses(self.rooms, self.graph), [])

    def test_the_rooms_form_no_ring(self):
        self.assertIsNone(house.cycle(self.rooms))

    def test_the_table_allows_no_more_than_is_used(self):
        self.assertEqual(house.unused(self.rooms, self.graph), [])
