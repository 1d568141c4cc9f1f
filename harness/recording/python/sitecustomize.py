"""Begins a traced or emulated program: Python imports this before the program, from the front of PYTHONPATH.

It gives way to a sitecustomize of the program's own, and waits for PyTorch to be imported.
"""
import _thread
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_own():
    this = sys.modules.pop("sitecustomize")
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", this)


class _WhenImported:
    """Finds torch as the other finders do, and begins when it is imported.

    Libraries that only ask whether it is there (transformers, datasets) find it as often as they like.
    """

    def __init__(self):
        self.asked = _thread._local()  # this thread asks the other finders

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or getattr(self.asked, "already", False):
            return None
        import importlib.util

        self.asked.already = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.asked.already = False
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                run(module)
                _begin(module)

            spec.loader.exec_module = exec_module
        return spec


def _say(sentence):
    if os.environ.get("PEAKBENCH_TRACE_QUIET") != "1":
        print("peakbench: " + sentence, file=sys.stderr)


def _begin(torch):
    """The garbage collector counts none of what is made here: its runs may free memory of the card."""
    import gc

    ran, count = gc.isenabled(), gc.get_count()[0]
    gc.disable()
    _begin_uncounted(torch)
    if "_peakbench_tracing" in sys.modules:
        sys.modules["_peakbench_tracing"].count_objects(count)
    if ran:
        gc.enable()


def _part(name):
    """A module beside this file, under a name that no program has."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("_" + name, os.path.join(_HERE, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _begin_uncounted(torch):
    if _IS_SINGLE_RANK:
        _part("peakbench_single_rank").begin(torch)
    if _IS_TRACED:
        _begin_tracing(torch)


def _begin_tracing(torch):
    version, wanted = str(torch.__version__), os.environ.get("PEAKBENCH_TRACE_TORCH")
    if version != wanted:  # its structures are another's
        _say(
            f"this process is not traced: it uses PyTorch {version}, and the tracer is compiled for {wanted}; "
            "start Python directly, without a shell script or a launcher: then the tracer is compiled for that version"
        )
        return
    try:
        _part("peakbench_tracing").start(torch, _say)
    except Exception as error:  # the program runs on, traced as far as it was begun
        _say(f"this process is not traced wholly: {error!r}")


def _note_exceptions(folder):
    """Leaves what an uncaught exception says beside the journals: who reads them has no other word of it."""
    own = sys.excepthook

    def noted(kind, error, trace):
        own(kind, error, trace)
        # Python ends itself by the signal then, and would forget that over an import that calls eval().
        if issubclass(kind, KeyboardInterrupt):
            return
        try:
            import traceback

            said = traceback.format_exception_only(kind, error)[-1]
            with open(os.path.join(folder, f"{os.getpid()}.raised"), "w", errors="replace") as file:
                file.write(said)
        except Exception:  # the program ends all the same
            pass

    sys.excepthook = noted


_IS_TRACED = bool(os.environ.get("PEAKBENCH_TRACE_LIBRARY"))
_IS_SINGLE_RANK = bool(os.environ.get("PEAKBENCH_EMULATED_CARD")) and os.environ.get("PEAKBENCH_EMULATED_RANKS") == "alone"
if _IS_TRACED or _IS_SINGLE_RANK:
    sys.meta_path.insert(0, _WhenImported())
if _IS_TRACED:
    _note_exceptions(os.environ.get("PEAKBENCH_TRACE_FOLDER", ""))
_run_own()
