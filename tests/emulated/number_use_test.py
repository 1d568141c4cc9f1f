"""What a program does with a number, by its source, against the program itself: run with several numbers, it asks the same of the card or not."""

import ast
import contextlib
import gc
import io
import pathlib
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

import number_use

RUN = "class Run:\n    def step(self):\n        self.right = x.sum().item()  #here\n"
RUN_N = RUN.replace("right", "n")
# The line that ends in #here reads a number of x. `meter` is code of somebody else's.
LOGGED = {
    "accuracy": "meter.eval()\nright = 0\nfor _ in range(3):\n    right += (x == y).sum().item()  #here\n    torch.zeros(8)\nprint(right)",
    "result of a function": "def evaluate():\n    right = 0\n    right += x.sum().item()  #here\n    return right / 3\nprint(f'{evaluate():.2f}')",
    "two results": "def evaluate():\n    return x.sum().item(), 3  #here\nright, total = evaluate()\nprint(right / total)",
    "parameter": "def show(right, total=3):\n    print(right / total)\nshow(x.sum().item())  #here",
    "meter": "meter.update(x.sum().item(), 3)  #here\ntorch.zeros(8)",
    "list": "rights = []\nrights.append(x.sum().item())  #here\nprint(sum(rights) / len(rights))",
    "dictionary": "found = {}\nfound['n'] = found.get('n', 0) + x.sum().item()  #here\nprint(found['n'])",
    "attribute": RUN + "    def show(self):\n        print(self.right)\nrun = Run()\nrun.step()\nrun.show()",
    "property": RUN + "    @property\n    def share(self):\n        return self.right / 3\nrun = Run()\nrun.step()\nprint(run.share)",
    "text": "meter.write(f'{x.sum() / 3:.2f}')  #here\ntorch.zeros(8)",
    "conversion": "right = int(x.sum())  #here\nprint(right)",
    "all": "found = []\nfound.extend(x.tolist())  #here\nprint(found[:2])",
    "logger": "right = x.sum().item()  #here\nbest = max(right, 3)\nmeter.log({'right': right / 3, 'best': best})",
    "printed": "print('right', x.sum().item())  #here",
    "numpy": "import statistics as np\nfound = [1]\nfound.append(x.sum().item())  #here\nprint(np.mean(found))",
    "saved": "right = x.sum().item()  #here\ntorch.save({'right': right}, 'file')",
}
ACTS = {
    "size": "torch.zeros(x.sum().item())  #here",
    "size later": "n = x.sum().item()  #here\nm = 2 * n\nkept = torch.zeros(m)",
    "much later": "v = x.sum().item()  #here\nfor _ in range(3):\n    torch.zeros(8)\nif v < 3:\n    torch.zeros(1 << 20)",
    "conversion": "rows = int(x.sum())  #here\nkept = torch.empty(rows, 16)",
    "loop": "for _ in range(int(x.sum())):  #here\n    torch.zeros(8)",
    "loop later": "n = x.sum().item()  #here\nfor _ in range(n):\n    torch.zeros(8)",
    "while": "n = 0\nwhile x.sum().item() > n:  #here\n    torch.zeros(8)\n    n += 3",
    "function": "def make(rows):\n    return torch.zeros(rows)\nmake(x.sum().item())  #here",
    "result of a function": "def count():\n    return x.sum().item()  #here\nif count() > 3:\n    torch.zeros(8)",
    "function handed over": "def count(_):\n    return x.sum().item()  #here\ncount(1)\ntorch.zeros(list(map(count, [1])))",
    "list": "sizes = []\nsizes.append(x.sum().item())  #here\ntorch.zeros(sizes[0])",
    "attribute": "run = types.SimpleNamespace()\nrun.n = x.sum().item()  #here\nif run.n > 3:\n    torch.zeros(8)",
    "global": "def count():\n    global n\n    n = x.sum().item()  #here\ncount()\ntorch.zeros(n)",
    "choice": "n = x.sum().item()  #here\nrows = 8 if n > 3 else 16\ntorch.zeros(rows)",
    "or": "n = x.sum().item()  #here\nn > 3 or torch.zeros(8)",
    "filter": "kept = [one for one in x.tolist() if one > 3]  #here\ntorch.zeros(len(kept))",
    "each": "for one in x.tolist():  #here\n    if one > 3:\n        torch.zeros(8)",
    "index": "sizes = [1, 2, 3, 4, 5, 6, 7, 8]\ntorch.zeros(sizes[x.sum().item()])  #here",
    "best": "best = 3\ndef evaluate():\n    return x.sum().item()  #here\nfound = evaluate()\nif found > best:\n    best = found\n    torch.zeros(8)",
    "by another name": "n = x.sum().item()  #here\nmake = torch.zeros\nmake(n)",
    "text": "n = x.sum().item()  #here\neval(f'torch.zeros({n})')",
    "globals": "n = x.sum().item()  #here\ntorch.zeros(globals()['n'])",
}


HELPERS = "import torch\ndef use(one):\n    torch.zeros(one.n)\nclass Base:\n    def make(self):\n        torch.zeros(self.n)\n"
# Programs of two files, the script and helpers.py. What the script reads decides in the other file.
OTHERS_ACT = {
    "an object is handed over": (RUN_N + "run = Run()\nrun.step()\nprint(run.n)\nhelpers.use(run)", HELPERS),
    "an object of nobody's class": ("run = types.SimpleNamespace()\nrun.n = x.sum().item()  #here\nprint(run.n)\nhelpers.use(run)", HELPERS),
    "it hands itself over": (RUN_N + "        helpers.use(self)\nrun = Run()\nrun.step()\nprint(run.n)", HELPERS),
    "it is in a list": (RUN_N + "run = Run()\nrun.step()\nprint(run.n)\nfor one in [run]:\n    helpers.use(one)", HELPERS),
    "a base of another file": (RUN_N.replace("Run:", "Run(helpers.Base):") + "run = Run()\nrun.step()\nprint(run.n)\nrun.make()", HELPERS),
    "a base behind a base": (
        "class Middle(helpers.Base):\n    pass\n" + RUN_N.replace("Run:", "Run(Middle):") + "run = Run()\nrun.step()\nprint(run.n)\nrun.make()",
        HELPERS,
    ),
    "a property of a base": (RUN_N.replace("Run:", "Run(helpers.Base):") + "run = Run()\nrun.step()\nprint(run.n)",
                             HELPERS + "    @property\n    def n(self):\n        return 3\n    @n.setter\n    def n(self, n):\n        torch.zeros(n)\n"),
    "a descriptor": ("class Run:\n    n = helpers.Keeps()\n    def step(self):\n        self.n = x.sum().item()  #here\nrun = Run()\nrun.step()\nprint(run.n)",
                     "import torch\nclass Keeps:\n    def __set__(self, one, n):\n        torch.zeros(n)\n    def __get__(self, one, kind):\n        return 3\n"),
    "a decorator": ("@helpers.known\n" + RUN_N + "run = Run()\nrun.step()\nprint(run.n)\nhelpers.use_last()",
                    "import torch\nfound = []\ndef known(kind):\n    def make():\n        found.append(kind())\n        return found[-1]\n    return make\n"
                    "def use_last():\n    torch.zeros(found[-1].n)\n"),
    "a module's attribute": ("helpers.n = x.sum().item()  #here\nprint(helpers.n)\nhelpers.make()", "import torch\ndef make():\n    torch.zeros(n)\n"),
    "a class's attribute": (RUN_N.replace("self.n =", "Run.n =") + "Run().step()\nprint(Run.n)\nhelpers.use(Run)", HELPERS),
    "a callback": (RUN_N + "run = Run()\nhelpers.call(run.step)\nprint(run.n)", "import torch\ndef call(step):\n    step()\n    torch.zeros(step.__self__.n)\n"),
    "a thread": (RUN_N + "run = Run()\nrun.step()\nprint(run.n)\nthreading.Thread(target=helpers.use, args=(run,)).start()", HELPERS),
    "a method is called there": ("class Run:\n    def count(self):\n        return x.sum().item()  #here\nrun = Run()\nprint(run.count())\nhelpers.use(run)",
                                 "import torch\ndef use(one):\n    torch.zeros(one.count())\n"),
    "a property is read there": (
        "class Run:\n    @property\n    def n(self):\n        return x.sum().item()  #here\nrun = Run()\nprint(run.n)\nhelpers.use(run)",
        HELPERS,
    ),
    "a dictionary of an object": (RUN_N.replace("self.n =", "self.found = {}\n        self.found['n'] =") + "run = Run()\nrun.step()\nprint(run.found)\nhelpers.use(run)",
                                  "import torch\ndef use(one):\n    torch.zeros(one.found['n'])\n"),
    "a dictionary of the other file": (RUN_N.replace("self.n =", "self.found = helpers.found\n        self.found['n'] =") + "run = Run()\nrun.step()\nprint(run.found)\nhelpers.use()",
                                       "import torch\nfound = {}\ndef use():\n    torch.zeros(found['n'])\n"),
    "a dictionary is handed over": (
        "found = {}\nfound['n'] = x.sum().item()  #here\nprint(found)\nhelpers.use(found)",
        "import torch\ndef use(found):\n    torch.zeros(found['n'])\n",
    ),
    "all of an object": (RUN_N + "run = Run()\nrun.step()\nprint(run.n)\nhelpers.use(run.__dict__)", "import torch\ndef use(found):\n    torch.zeros(found['n'])\n"),
    "a global by its name": ("n = x.sum().item()  #here\nprint(n)\nhelpers.use()", "import torch\nimport __main__\ndef use():\n    torch.zeros(__main__.n)\n"),
    "a global by the modules": (
        "n = x.sum().item()  #here\nprint(n)\nhelpers.use()",
        "import sys, torch\ndef use():\n    torch.zeros(sys.modules['__main__'].n)\n",
    ),
    "a logger of the other file": ("helpers.log(x.sum().item())  #here", "import torch\ndef log(n):\n    torch.zeros(n)\n"),
    "a meter of the other file": (
        "from helpers import Meter\nmeter = Meter()\nmeter.update(x.sum().item())  #here",
        "import torch\nclass Meter:\n    def update(self, n):\n        torch.zeros(n)\n",
    ),
    "a meter that gives back": ("meter = types.Meter()\nmeter.update(x.sum().item())  #here\nif meter.n > 3:\n    torch.zeros(8)", ""),
    "a meter of an object that gives back": (
        "run = types.SimpleNamespace()\nrun.meter = types.Meter()\nrun.meter.update(x.sum().item())  #here\nif run.meter.n > 3:\n    torch.zeros(8)",
        "",
    ),
    "a method of the other file's object": ("class Run:\n    def show(self, n):\n        print(n)\nrun = helpers.Run()\nrun.show(x.sum().item())  #here",
                                            "import torch\nclass Run:\n    def show(self, n):\n        torch.zeros(n)\n"),
}
OTHERS_ACT.update({
    "a method that takes any object": (
        "class Run:\n    @staticmethod\n    def step(run):\n        run.n = x.sum().item()  #here\nRun.step(helpers)\nprint(helpers.n)\nhelpers.use(helpers)",
        HELPERS,
    ),
    "a method of a base by the name of another's": (
        "class Other:\n    def show(self, n):\n        print(n)\nclass Run(helpers.Base):\n    pass\nrun = Run()\nrun.show(x.sum().item())  #here",
                                                     "import torch\nclass Base:\n    def show(self, n):\n        torch.zeros(n)\n"),
    "a decorator of a method": (RUN_N.replace("    def step", "    @helpers.then\n    def step") + "run = Run()\nrun.step()\nprint(run.n)",
                                "import torch\ndef then(step):\n    def both(self):\n        step(self)\n        torch.zeros(self.n)\n    return both\n"),
    "a decorator of a function": ("@helpers.then\ndef count():\n    return x.sum().item()  #here\nprint(count())",
                                  "import torch\ndef then(count):\n    def both():\n        torch.zeros(count())\n        return 3\n    return both\n"),
    "a decorator of what it is handed to": ("@helpers.then\ndef show(n):\n    print(n)\nshow(x.sum().item())  #here",
                                            "import torch\ndef then(show):\n    def both(n):\n        torch.zeros(n)\n        show(n)\n    return both\n"),
    "a print of the other file": ("from helpers import print\nprint(x.sum().item())  #here", "import torch\ndef print(n):\n    torch.zeros(n)\n"),
    "another print": ("print = helpers.show\nprint(x.sum().item())  #here", "import torch\ndef show(n):\n    torch.zeros(n)\n"),
    "a loop's object": (
        "run = types.SimpleNamespace()\nfor run in [helpers]:\n    run.n = x.sum().item()  #here\nprint(run.n)\nhelpers.make()",
        "import torch\ndef make():\n    torch.zeros(n)\n",
    ),
    "a function of the other file by the same name": (
        "def show(n):\n    print(n)\nshow = helpers.show\nshow(x.sum().item())  #here",
        "import torch\ndef show(n):\n    torch.zeros(n)\n",
    ),
    "an argument by the name of a function": (
        "def show(n):\n    print(n)\ndef main(show):\n    show(x.sum().item())  #here\nmain(helpers.show)",
        "import torch\ndef show(n):\n    torch.zeros(n)\n",
    ),
    "a file of the other file": (
        "print(x.sum().item(), file=helpers.Sink())  #here",
        "import torch\nclass Sink:\n    def write(self, text):\n        text.isdigit() and torch.zeros(int(text))\n",
    ),
})
# The same, where the other file sees nothing of it.
OTHERS_DO_NOT = {
    "another object is handed over": (RUN_N + "run = Run()\nother = types.SimpleNamespace(n=3)\nrun.step()\nprint(run.n)\nhelpers.use(other)", HELPERS),
    "two classes, one of which is handed over": (RUN_N + "class Other:\n    size = 3\nrun = Run()\nrun.step()\nprint(run.n)\nhelpers.use(Other())", "import torch\ndef use(one):\n    torch.zeros(one.size)\n"),
    "a base of the same file": ("class Base:\n    pass\n" + RUN_N.replace("Run:", "Run(Base):") + "run = Run()\nrun.step()\nprint(run.n)", HELPERS),
    "a parameter of the same file": (RUN_N + "def main(run):\n    run.step()\n    print(run.n)\nmain(Run())", HELPERS),
    "a dictionary of an object": (RUN_N.replace("self.n =", "self.found = {}\n        self.found['n'] =") + "run = Run()\nrun.step()\nprint(run.found)", HELPERS),
    "nobody's class": ("run = types.SimpleNamespace()\nrun.n = x.sum().item()  #here\nprint(run.n)", HELPERS),
    "the other file asks whether it was started": ("n = x.sum().item()  #here\nprint(n)", "if __name__ == '__main__':\n    print(3)\n"),
    "a meter that is printed": ("meter = types.Meter()\nmeter.update(x.sum().item())  #here\nprint(meter.n / 3)", ""),
}


class Meter:
    n = 0

    def update(self, n):
        self.n += n


class Tensor:
    """Whose every number is `read`."""

    def __init__(self, read):
        self.read = read

    def sum(self):
        return self

    def item(self):
        return self.read

    def tolist(self):
        return [self.read, 1, self.read]

    def __int__(self):
        return self.read

    def __truediv__(self, other):
        return self

    def __format__(self, how):
        return format(self.read, how)

    def __eq__(self, other):
        return self


class Card(types.ModuleType):
    """Notes what is asked of it; what is saved takes none of its memory."""

    def __init__(self):
        super().__init__("torch")
        self.asked = []

    def __getattr__(self, name):
        return lambda *words, **more: self.asked.append((name, words)) if name != "save" else None


def asked_of_the_card(text, read):
    card = Card()
    names = {"torch": card, "x": Tensor(read), "y": None, "meter": mock.MagicMock(), "types": types}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, "program.py", "exec"), names)
    return card.asked


@contextlib.contextmanager
def with_helpers(text):
    """Of helpers.py, a file of the user's."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "helpers.py")
        file.write_text(text, encoding="utf-8")
        module = types.ModuleType("helpers")
        module.__file__ = str(file)
        yield module


def asked_by_both(text, other, read):
    card, main = Card(), types.ModuleType("__main__")
    nobodys = types.SimpleNamespace(SimpleNamespace=types.SimpleNamespace, Meter=Meter)
    with with_helpers(other) as helpers, mock.patch.dict(sys.modules, {"torch": card, "helpers": helpers, "__main__": main}):
        vars(main).update(torch=card, helpers=helpers, x=Tensor(read), types=nobodys, threading=threading)
        exec(compile(other, helpers.__file__, "exec"), vars(helpers))
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, "program.py", "exec"), vars(main))
    return card.asked


@contextlib.contextmanager
def as_script(file, others=None):
    """As in a process that was started with this file, and without the modules of this test."""
    with mock.patch.object(sys.modules["__main__"], "__file__", file), mock.patch.dict(sys.modules, others or {}):
        for name in ("number_use", __name__):
            sys.modules.pop(name, None)
        yield


def flags(text, is_script=True, others=None):
    line = text[: text.index("#here")].count("\n") + 1
    there = [node for node in ast.walk(ast.parse(text)) if getattr(node, "lineno", 0) == line]
    read = next(node for node in there if isinstance(node, ast.JoinedStr) or number_use.name_called(node) in ("item", "tolist", "int"))
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write("import torch\n" + text)
        file.flush()
        with as_script(file.name if is_script else "/somewhere/else.py", others):
            return number_use.number_use(file.name, read.lineno + 1, read.end_lineno + 1, read.col_offset, read.end_col_offset)


class NumberUse(unittest.TestCase):
    def test_what_is_only_logged(self):
        for name, text in LOGGED.items():
            with self.subTest(name):
                self.assertTrue(flags(text) & number_use.FLAGS["only_logged"])
                self.assertEqual(asked_of_the_card(text, 2), asked_of_the_card(text, 7))

    def test_only_a_statement_that_prints_it_prints_it_alone(self):
        self.assertEqual([name for name, text in LOGGED.items() if flags(text) & number_use.FLAGS["only_printed"]], ["printed"])
        self.assertFalse([name for name, text in ACTS.items() if flags(text) & number_use.FLAGS["only_printed"]])
        for text, is_so in (("print(f'{x.sum().item() / 3:.2f}')", True), ("print('%d of %d' % (x.sum().item(), 3))", True), ("print(1 - float(x.sum().item()))", True),
                            ("print(3 / x.sum().item())", False), ("print(math.log(x.sum().item()))", False), ("print(rows[x.sum().item()])", False),
                            ("print('a' if x.sum().item() > 3 else 'b')", False), ("print(x.sum().item()) or torch.zeros(8)", False),
                            ("def print(n):\n    torch.zeros(n)\nprint(x.sum().item())", False), ("v = x.sum().item()  #here\nprint(v)", False)):  # fmt: skip
            with self.subTest(text):
                self.assertEqual(bool(flags(text if "#here" in text else text + "  #here") & number_use.FLAGS["only_printed"]), is_so)

    def test_what_another_name_may_read(self):
        for text in ("found = {}\ndef step():\n    found['n'] = x.sum().item()  #here\nstep()\nif found['n'] < 5:\n    torch.zeros(8)",
                     "def step(found):\n    found['n'] = x.sum().item()  #here\nfound = {}\nstep(found)\nprint(found)",
                     "found = {}\nlog = found\nlog['n'] = x.sum().item()  #here\nprint(log['n'])",
                     "counts = []\ndef hook(*_):\n    counts.append(x.sum().item())  #here\nhook()\ntorch.zeros(counts[0])",
                     "run = types.SimpleNamespace()\nrun.n = x.sum().item()  #here\nprint(3)",
                     "run = types.SimpleNamespace()\nrun.n = x.sum().item()  #here\nprint(run.n, getattr(run, 'n') > 3)",
                     "meter.resize_token_embeddings(x.sum().item())  #here", "random.seed(x.sum().item())  #here", "meter.save(x.sum().item())  #here",
                     "torch.save(x.sum().item(), 'file')  #here\nif torch.load('file') > 3:\n    torch.zeros(8)"):  # fmt: skip
            with self.subTest(text):
                self.assertFalse(flags(text) & number_use.FLAGS["only_logged"])

    def test_what_another_file_may_read(self):
        in_others = {name for name, text in LOGGED.items() if flags(text, is_script=False) & number_use.FLAGS["only_logged"]}
        self.assertEqual(in_others, {"meter", "parameter", "text", "printed"})

    def test_what_code_of_another_file_acts_on(self):
        for name, (text, other) in OTHERS_ACT.items():
            with self.subTest(name), with_helpers(other) as helpers:
                self.assertNotEqual(asked_by_both(text, other, 2), asked_by_both(text, other, 7))
                self.assertFalse(flags("import helpers\n" + text, others={"helpers": helpers}) & (number_use.FLAGS["only_logged"] | number_use.FLAGS["only_printed"]))

    def test_what_code_of_another_file_does_not_see(self):
        for name, (text, other) in OTHERS_DO_NOT.items():
            with self.subTest(name), with_helpers(other) as helpers:
                self.assertEqual(asked_by_both(text, other, 2), asked_by_both(text, other, 7))
                self.assertTrue(flags("import helpers\n" + text, others={"helpers": helpers}) & number_use.FLAGS["only_logged"])

    def test_a_script_that_another_file_imports(self):
        text = "n = x.sum().item()  #here\nprint(n)"
        self.assertTrue(flags(text) & number_use.FLAGS["only_logged"])
        with mock.patch.object(number_use, "is_script", return_value=False):
            self.assertFalse(flags(text) & number_use.FLAGS["only_logged"])
        with tempfile.NamedTemporaryFile(suffix=".py") as file, as_script(file.name):
            sys.modules["__mp_main__"] = sys.modules["__main__"]  # by multiprocessing
            self.assertTrue(number_use.is_script(file.name))
            sys.modules["train"] = types.SimpleNamespace(__file__=file.name)
            self.assertFalse(number_use.is_script(file.name))

    def test_what_decides_what_is_asked_of_the_card(self):
        for name, text in ACTS.items():
            with self.subTest(name):
                self.assertFalse(flags(text) & number_use.FLAGS["only_logged"])
                self.assertNotEqual(asked_of_the_card(text, 2), asked_of_the_card(text, 7))

    def test_what_the_file_does_not_show(self):
        for text in ("from helpers import grow\ngrow(x.sum().item())  #here", "def count():\n    return x.sum().item()  #here",
                     "n = x.sum().item()  #here\ny.resize_(n)", "kept = y.view(x.sum().item(), -1)  #here",
                     "import torch as t\nt.cuda.set_limit(x.sum().item())  #here", "x.sum().item()  #here", "queue.put(x.sum().item())  #here"):  # fmt: skip
            with self.subTest(text):
                self.assertFalse(flags(text) & number_use.FLAGS["only_logged"])

    def test_what_makes_an_integer(self):
        for text, makes in (("n = int(x.sum().item())  #here", True), ("n = math.floor(3 * x.item())  #here", True),
                            ("n = float(x.item())  #here", False), ("n = x.item()  #here\nm = int(n)", False)):  # fmt: skip
            with self.subTest(text):
                self.assertEqual(bool(flags(text) & number_use.FLAGS["makes_integer"]), makes)

    def test_nothing_stays_for_the_collector(self):
        code = compile(pathlib.Path(number_use.__file__).read_text(encoding="utf-8"), "number_use.py", "exec")
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write("right = x.item()\nprint(right)\n")
            file.flush()
            gc.disable()
            self.addCleanup(gc.enable)
            before = gc.get_count()[0]
            names = {}
            exec(code, names)
            with as_script(file.name):
                found = names["number_use"](file.name, 1, 1, 8, 16)
            names.clear()
            left = gc.get_count()[0] - before
        self.assertEqual(found, 2)
        self.assertLess(left, 10)

    def test_a_file_that_is_no_python(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write("n = = 3\n")
            file.flush()
            self.assertEqual(number_use.number_use(file.name, 1, 1, 0, 1), 0)
        self.assertEqual(number_use.number_use("/no/such/file.py", 1, 1, 0, 1), 0)
