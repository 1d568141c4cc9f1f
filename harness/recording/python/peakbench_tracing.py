"""Tells the tracer what only Python knows: modules, storages of models and optimizers, phases.

Nothing here keeps a tensor alive, and nothing raises into the program: what cannot be told is left
unsaid.
"""
import atexit
import ctypes
import functools
import gc
import importlib
import os
import sys
import threading

# The numbers of journal.h (Mark).
SAVE_BEGINS, SAVE_ENDS = 8, 9
CAPTURE_BEGINS, CAPTURE_ENDS = 12, 13
NVTX, PHASE = 1, 2  # who named a range (RangeSource)

DEEPEST = 64  # of tensors within tensors
THRESHOLDS = 0x5EAC0101, 0x5EAC0102, 0x5EAC0103  # that nothing else in the process has

TELLING = None


def start(torch, say):
    library = ctypes.PyDLL(os.environ["PEAKBENCH_TRACE_LIBRARY"])
    if library.peakbench_tracer_start() != 1:
        say("this process is not traced: no journal can be written")
        return
    thresholds = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    library.peakbench_tracer_find_count(*THRESHOLDS)
    gc.set_threshold(*thresholds)
    telling = Telling(torch, library, say)
    telling.begin()
    global TELLING  # peakbench.phase() looks for it
    TELLING = telling


def count_objects(count):
    """As many as Python's collector has counted since it ran: those of the tracer are not the program's."""
    if TELLING is not None:
        TELLING.library.peakbench_tracer_set_count(count)


class Telling:
    def __init__(self, torch, library, say):
        self.torch, self.library, self.say = torch, library, say
        library.peakbench_tracer_function.restype = ctypes.py_object
        library.peakbench_tracer_function.argtypes = [ctypes.c_char_p, ctypes.py_object]
        library.peakbench_tracer_know.argtypes = [ctypes.py_object] * 4
        library.peakbench_tracer_watch_calls.argtypes = [ctypes.py_object] * 2
        self.mark = self.function(b"mark")
        self.begin_range = library.peakbench_tracer_begin_range
        self.begin_range.restype = ctypes.c_uint64
        self.end_range = library.peakbench_tracer_end_range
        self.end_range.argtypes = [ctypes.c_uint64]
        self.join_group = library.peakbench_tracer_join_group
        self.attach = library.peakbench_tracer_attach_cuda
        self.attach.restype = ctypes.c_char_p

    def function(self, name, of=None):
        return self.library.peakbench_tracer_function(name, of)

    def begin(self):
        torch = self.torch
        self.library.peakbench_tracer_know(torch.Tensor, torch.nn.Parameter, torch.nn.Module, storages_of)
        # PyTorch's compiler traces these as it does the program: there they are nothing.
        self.is_compiling = importlib.import_module("torch.compiler").is_compiling
        self.watch_calls()
        self.watch_updates()
        graph = torch.autograd.graph
        graph._engine_run_backward = self.function(b"backward", graph._engine_run_backward)
        torch.autograd._engine_run_backward = graph._engine_run_backward
        self.watch_saves()
        self.watch_captures()
        self.watch_nvtx()
        self.watch_process_group()
        self.begin_open_phases()
        atexit.register(self.library.peakbench_tracer_finish)
        if torch.backends.cuda.is_built():
            torch.cuda._lazy_call(self.attach_cuda)

    def watch_calls(self):
        """A module that is called runs a function of C's, which makes no object. Python 3.11 runs this one where a class's own
        __call__ calls super()'s."""
        module, is_compiling, call = self.torch.nn.Module, self.is_compiling, self.function(b"call")
        original = module.__call__

        @functools.wraps(original)
        def called(*args, **kwargs):
            if is_compiling():
                return original(*args, **kwargs)
            return call(*args, **kwargs)

        self.library.peakbench_tracer_watch_calls(called, original)
        module.__call__ = called

    def watch_updates(self):
        is_compiling = self.is_compiling
        before, after = self.function(b"before_update"), self.function(b"after_update")

        def before_update(optimizer, args, kwargs):
            if not is_compiling():
                before(optimizer)

        def after_update(optimizer, args, kwargs):
            if not is_compiling():
                after(optimizer)

        optimizer = importlib.import_module("torch.optim.optimizer")  # torch.optim hides its name
        optimizer.register_optimizer_step_pre_hook(before_update)
        optimizer.register_optimizer_step_post_hook(after_update)

    def attach_cuda(self):
        problem = self.attach()
        if problem:
            self.say("CUDA memory is not traced: " + problem.decode(errors="replace"))

    def watch_saves(self):
        save, mark = self.torch.save, self.mark

        @functools.wraps(save)
        def marked(*args, **kwargs):
            mark(SAVE_BEGINS)
            try:
                return save(*args, **kwargs)
            finally:
                mark(SAVE_ENDS)

        self.torch.save = marked

    def watch_captures(self):
        """What is allocated while a CUDA graph is captured comes from its private pool."""
        graph = getattr(self.torch.cuda, "CUDAGraph", None)
        if graph is None:
            return
        begin, end, mark = graph.capture_begin, graph.capture_end, self.mark

        @functools.wraps(begin)
        def marked_begin(*args, **kwargs):
            begun = begin(*args, **kwargs)
            mark(CAPTURE_BEGINS)
            return begun

        @functools.wraps(end)
        def marked_end(*args, **kwargs):
            mark(CAPTURE_ENDS)
            return end(*args, **kwargs)

        graph.capture_begin, graph.capture_end = marked_begin, marked_end

    def watch_process_group(self):
        """Which rank this is: multiprocessing's children have it from nowhere else, and a child's RANK may be its parent's."""
        module = sys.modules.get("torch.distributed.distributed_c10d")
        update = getattr(module, "_update_default_pg", None)
        if update is None:
            return

        @functools.wraps(update)
        def watched_update(group):
            update(group)
            if isinstance(group, module.ProcessGroup):
                self.join_group(group.rank(), group.size())

        module._update_default_pg = watched_update

    # Ranges that the program names.

    def watch_nvtx(self):
        """torch.cuda.nvtx.range() calls these two by their names."""
        nvtx = self.torch.cuda.nvtx
        push, pop = nvtx.range_push, nvtx.range_pop
        open_ranges = threading.local()

        @functools.wraps(push)
        def marked_push(msg, *args, **kwargs):
            pushed = push(msg, *args, **kwargs)
            open_ranges.__dict__.setdefault("ids", []).append(self.name_range(msg, NVTX))
            return pushed

        @functools.wraps(pop)
        def marked_pop(*args, **kwargs):
            popped = pop(*args, **kwargs)
            ids = open_ranges.__dict__.get("ids")
            if ids:
                self.end_range(ids.pop())
            return popped

        nvtx.range_push, nvtx.range_pop = marked_push, marked_pop

    def name_range(self, name, source):
        return self.begin_range(str(name).encode(errors="replace"), source)

    def begin_phase(self, name):
        return self.name_range(name, PHASE)

    def begin_open_phases(self):
        """peakbench.phase() that this thread entered before PyTorch was imported."""
        begin = getattr(sys.modules.get("peakbench._phase"), "begin_open", None)
        if begin is not None:
            begin(self)


def storages_of(tensor):
    """The plain tensors that one of a subclass is made of: DTensor, quantized ones."""
    parts = [tensor]
    for _ in range(DEEPEST):
        flat = []
        for part in parts:
            if hasattr(type(part), "__tensor_flatten__"):
                names, _context = part.__tensor_flatten__()
                flat += [getattr(part, name) for name in names]
        if not flat:
            return parts
        parts = flat
    return parts
