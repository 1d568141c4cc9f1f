"""`peakbench.phase` (python/peakbench): names that the tracer is told of, and nothing where there is none."""

import importlib
import os
import sys
import threading
import types
import unittest
from unittest import mock


class Telling:
    """Stands for the tracer: what it was told, in order."""

    def __init__(self):
        self.told, self.numbers = [], 0

    def begin_phase(self, name):
        self.numbers += 1
        self.told.append(("begin", name, self.numbers))
        return self.numbers

    def end_range(self, number):
        self.told.append(("end", number))


class Phases(unittest.TestCase):
    def setUp(self):
        self.telling = Telling()
        self.enterContext(mock.patch.dict(sys.modules, {"_peakbench_tracing": types.SimpleNamespace(TELLING=self.telling)}))
        self.phase = self.imported(traced=True)

    def imported(self, traced):
        with mock.patch.dict(os.environ, {"PEAKBENCH_TRACE_LIBRARY": "tracer.so"} if traced else {}):
            for name in [name for name in sys.modules if name.split(".")[0] == "peakbench"]:
                del sys.modules[name]
            return importlib.import_module("peakbench").phase

    def test_nested_and_left_by_an_exception(self):
        with self.assertRaises(ZeroDivisionError), self.phase("outer"):
            with self.phase("inner"):
                pass
            1 / 0
        self.assertEqual(self.telling.told, [("begin", "outer", 1), ("begin", "inner", 2), ("end", 2), ("end", 1)])

    def test_a_decorated_function_that_calls_itself(self):
        @self.phase("score")
        def score(depth):
            """Of samples."""
            return depth if depth == 0 else score(depth - 1)

        self.assertEqual((score(1), score.__name__, score.__doc__), (0, "score", "Of samples."))
        self.assertEqual(self.telling.told, [("begin", "score", 1), ("begin", "score", 2), ("end", 2), ("end", 1)])

    def test_threads_that_share_one_object(self):
        shared, inside = self.phase("shared"), threading.Barrier(2)

        def work():
            with shared:
                inside.wait(10)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(self.telling.told), [("begin", "shared", 1), ("begin", "shared", 2), ("end", 1), ("end", 2)])

    def test_those_entered_before_the_tracer_are_told_when_it_comes(self):
        sys.modules["_peakbench_tracing"].TELLING = None
        with self.phase("past"):
            pass
        with self.phase("early"):
            sys.modules["_peakbench_tracing"].TELLING = self.telling
            sys.modules["peakbench._phase"].begin_open(self.telling)
        self.assertEqual(self.telling.told, [("begin", "early", 1), ("end", 1)])

    def test_nothing_where_nobody_traces(self):
        phase = self.imported(traced=False)
        with phase("outer"):
            self.assertEqual(phase("f")(lambda: 3)(), 3)
        self.assertEqual(self.telling.told, [])
        self.assertNotIn("torch", sys.modules)

    def test_nothing_in_what_is_compiled(self):
        compiler = types.SimpleNamespace(is_compiling=lambda: True)
        with mock.patch.dict(sys.modules, {"torch": types.SimpleNamespace(compiler=compiler)}), self.phase("graph"):
            pass
        self.assertEqual(self.telling.told, [])

    def test_what_is_no_name_or_runs_in_pieces(self):
        def generator():
            yield 1

        async def coroutine():
            pass

        for wrong in ("", None, generator):
            with self.assertRaisesRegex(TypeError, r'takes a name, as in peakbench.phase\("rollout"\)'):
                self.phase(wrong)
        for function in (generator, coroutine):
            with self.assertRaisesRegex(TypeError, "runs in pieces: use `with peakbench.phase"):
                self.phase("f")(function)
