"""What a program does with a number, by its source, against the program itself: run with several numbers, it asks the same of the card or not.

usage: number_use_test.py [-v]
"""

import ast
import contextlib
import gc
import io
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "emulator/core"))
import number_use  # noqa: E402

RUN = "class Run:\n    def step(self):\n        self.right = x.sum().item()  #here\n"
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


def flags(text, is_script=True):
    line = text[: text.index("#here")].count("\n") + 1
    there = [node for node in ast.walk(ast.parse(text)) if getattr(node, "lineno", 0) == line]
    read = next(node for node in there if isinstance(node, ast.JoinedStr) or number_use.name_called(node) in ("item", "tolist", "int"))
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write("import torch\n" + text)
        file.flush()
        script = file.name if is_script else "/somewhere/else.py"
        with mock.patch.object(sys.modules["__main__"], "__file__", script):
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
            with mock.patch.object(sys.modules["__main__"], "__file__", file.name):
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


if __name__ == "__main__":
    unittest.main()
