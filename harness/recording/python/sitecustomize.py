"""Begins a traced program: Python imports this before the program, from the front of PYTHONPATH.

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
    """Finds torch as the other finders do, and begins to trace when it is imported.

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


def _begin_uncounted(torch):
    version, wanted = str(torch.__version__), os.environ.get("PEAKBENCH_TRACE_TORCH")
    if version != wanted:  # its structures are another's
        _say(
            f"this process is not traced: it uses PyTorch {version}, and the tracer is compiled for {wanted}; "
            "start Python directly, without a shell script or a launcher: then the tracer is compiled for that version"
        )
        return
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        "_peakbench_tracing", os.path.join(_HERE, "peakbench_tracing.py")
    )
    tracing = importlib.util.module_from_spec(spec)
    sys.modules["_peakbench_tracing"] = tracing
    try:
        spec.loader.exec_module(tracing)
        tracing.start(torch, _say)
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


if os.environ.get("PEAKBENCH_TRACE_LIBRARY"):
    sys.meta_path.insert(0, _WhenImported())
    _note_exceptions(os.environ.get("PEAKBENCH_TRACE_FOLDER", ""))
_run_own()
