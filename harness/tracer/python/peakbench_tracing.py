"""Tells the tracer what only Python knows: modules, storages of models and optimizers, phases.

Nothing here keeps a tensor alive, and nothing raises into the program: what cannot be told is left
unsaid.
"""
import atexit
import ctypes
import functools
import importlib
import os
import sys
import threading
import warnings
import weakref

# The numbers of journal_format.h (Mark) and trace.h (Role).
FORWARD_BEGINS, EVALUATION_BEGINS, GENERATION_BEGINS, CALL_ENDS = 0, 1, 2, 3
BACKWARD_BEGINS, BACKWARD_ENDS, UPDATE_BEGINS, UPDATE_ENDS = 4, 5, 6, 7
SAVE_BEGINS, SAVE_ENDS = 8, 9
CAPTURE_BEGINS, CAPTURE_ENDS = 12, 13
NVTX, PHASE = 1, 2  # who named a range (RangeSource)
PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE, INPUT = 0, 1, 2, 3, 4
KINDS = 256  # a mark's value is above its kind

MOST_RANKS = 1 << 31
DEEPEST = 64  # of containers within containers that tensors are looked for in
ELSEWHERE = " of a parameter on "  # as reports/analysis/findings.cpp reads it


def unfailing(hook):
    """What goes wrong in telling is none of the program's concern; it is said once.

    PyTorch's compiler traces hooks as it does the program: there they are nothing.
    """
    is_compiling = importlib.import_module("torch.compiler").is_compiling

    @functools.wraps(hook)
    def called(*args):
        if is_compiling():
            return
        try:
            hook(*args)
        except Exception as error:
            if hook.__name__ not in _FAILED:
                _FAILED.add(hook.__name__)
                args[0].say(f"{hook.__name__}: {error!r}")

    return called


_FAILED = set()
TELLING = None


def start(torch, say):
    library = ctypes.PyDLL(os.environ["PEAKBENCH_TRACE_LIBRARY"])
    rank = os.environ.get("RANK", "0")
    number = int(rank) if rank.isdecimal() else 0
    if library.peakbench_tracer_start(number if number < MOST_RANKS else 0) != 1:
        say("this process is not traced: no journal can be written")
        return
    telling = Telling(torch, library, say)
    telling.begin()
    global TELLING  # peakbench.phase() looks for it
    TELLING = telling


class Telling:
    def __init__(self, torch, library, say):
        self.torch, self.say = torch, say
        library.peakbench_tracer_function.restype = ctypes.py_object
        self.enter = library.peakbench_tracer_function(b"enter")
        self.leave = library.peakbench_tracer_function(b"leave")
        self.mark = library.peakbench_tracer_function(b"mark")
        self.text_of = library.peakbench_tracer_text
        self.name_of = library.peakbench_tracer_name
        self.name_of.argtypes = [ctypes.c_uint64] + [ctypes.c_int] * 4
        self.begin_range = library.peakbench_tracer_begin_range
        self.begin_range.restype = ctypes.c_uint64
        self.end_range = library.peakbench_tracer_end_range
        self.end_range.argtypes = [ctypes.c_uint64]
        self.attach = library.peakbench_tracer_attach_cuda
        self.attach.restype = ctypes.c_char_p
        by_identity = importlib.import_module("torch.utils.weak").WeakIdKeyDictionary
        self.plain = {torch.Tensor, torch.nn.Parameter}  # no subclass: one storage
        self.texts, self.kinds = {}, {}  # text -> its number; shape and dtype -> theirs
        self.modules = by_identity()  # module -> its number
        self.roots = by_identity()  # model -> prefix of its names
        self.parameters = by_identity()  # parameter -> its name
        self.optimizers = by_identity()  # optimizer -> its number
        self.updating = None  # the optimizer whose step goes on, weakly
        self.calls = threading.local()

    def begin(self):
        torch = self.torch
        # These hooks do nothing in what is compiled.
        warnings.filterwarnings("ignore", message=".*there are global hooks on modules")
        module = torch.nn.modules.module
        module.register_module_forward_pre_hook(self.on_enter)
        module.register_module_forward_hook(self.on_leave, with_kwargs=True, always_call=True)
        optimizer = importlib.import_module("torch.optim.optimizer")  # torch.optim hides its name
        optimizer.register_optimizer_step_pre_hook(self.before_update)
        optimizer.register_optimizer_step_post_hook(self.after_update)
        self.wrap(torch.autograd.graph, "_engine_run_backward", BACKWARD_BEGINS, BACKWARD_ENDS)
        torch.autograd._engine_run_backward = torch.autograd.graph._engine_run_backward
        self.wrap(torch, "save", SAVE_BEGINS, SAVE_ENDS)
        self.watch_captures()
        self.watch_nvtx()
        self.begin_open_phases()
        atexit.register(self.name_unfinished)
        if torch.backends.cuda.is_built():
            torch.cuda._lazy_call(self.attach_cuda)

    def attach_cuda(self):
        problem = self.attach()
        if problem:
            self.say("CUDA memory is not traced: " + problem.decode(errors="replace"))

    def wrap(self, owner, name, begins, ends):
        function = getattr(owner, name)
        mark = self.mark

        @functools.wraps(function)
        def marked(*args, **kwargs):
            mark(begins)
            try:
                return function(*args, **kwargs)
            finally:
                mark(ends)

        setattr(owner, name, marked)

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

    # Modules.

    @unfailing
    def on_enter(self, module, args):
        calls = self.calls.__dict__
        depth = calls.get("depth", 0)
        if depth == 0:
            self.begin_call(module)
        number = self.modules.get(module)
        if number is None:
            number = self.number_of(module)
        calls["depth"] = depth + 1
        self.enter(number)

    @unfailing
    def on_leave(self, module, args, *rest):
        # Keyword arguments and output; of a call that raised, PyTorch leaves out the first.
        calls = self.calls.__dict__
        depth = calls.get("depth", 0) - 1
        if depth < 0:
            return
        calls["depth"] = depth
        self.leave(0)
        if depth == 0:
            self.name_inputs(args, rest[0] if len(rest) == 2 else None)
            if calls.pop("said", False):
                self.mark(CALL_ENDS)

    def begin_call(self, module):
        if module not in self.roots:
            self.number_of(module)
        if not any(True for _ in module.parameters()):
            return  # a loss, an activation: part of what it is called in
        self.name_model(module)
        self.calls.said = True
        if module.training and self.torch.is_grad_enabled():
            self.mark(FORWARD_BEGINS)
        else:
            self.mark(GENERATION_BEGINS if is_generating() else EVALUATION_BEGINS)

    def number_of(self, module):
        """Names everything in the model, whose outermost module this is."""
        known = self.modules.get(module)
        if known is not None:
            return known
        name = type(module).__name__
        prefix = "" if not self.roots else name + "."
        if self.calls.__dict__.get("depth", 0) == 0:
            self.roots[module] = prefix
        for path, part in module.named_modules():
            if part not in self.modules:
                self.modules[part] = self.text(prefix + path if path else name)
        return self.modules[module]

    # Storages.

    def text(self, text):
        number = self.texts.get(text)
        if number is None:
            number = self.texts[text] = self.text_of(text.encode(errors="replace"))
        return number

    def name(self, tensor, role, name):
        for part in (tensor,) if type(tensor) in self.plain else storages_of(tensor):
            try:
                address = part.untyped_storage().data_ptr()
                kind = (part.shape, part.dtype)
                words = self.kinds.get(kind)
                if words is None:
                    dtype = str(part.dtype).replace("torch.", "")
                    words = self.kinds[kind] = self.text(str(list(part.shape))), self.text(dtype)
            except Exception:  # a tensor without a storage of its own
                continue
            if address:
                self.name_of(address, role, self.text(name), *words)

    def name_model(self, module):
        prefix = self.roots.get(module, "")
        for name, parameter in module.named_parameters():
            if parameter not in self.parameters:
                self.parameters[parameter] = prefix + name
            self.name(parameter, PARAMETER, prefix + name)
        for name, buffer in module.named_buffers():
            self.name(buffer, BUFFER, prefix + name)

    def name_inputs(self, args, kwargs):
        try:
            for tensor in tensors_in((args, kwargs), self.torch.Tensor):
                if tensor.grad_fn is None and not isinstance(tensor, self.torch.nn.Parameter):
                    self.name(tensor, INPUT, "")
        except Exception:
            pass

    # Updates.

    @unfailing
    def before_update(self, optimizer, args, kwargs):
        self.name_unfinished()
        self.updating = weakref.ref(optimizer)
        number = self.optimizers.setdefault(optimizer, len(self.optimizers))
        for parameter in self.parameters_of(optimizer):
            name = self.parameters.get(parameter, "")
            self.name(parameter, PARAMETER, name)
            if parameter.grad is not None:
                self.name(parameter.grad, GRADIENT, name)
        self.mark(UPDATE_BEGINS + KINDS * number)

    @unfailing
    def after_update(self, optimizer, args, kwargs):
        self.updating = None
        self.mark(UPDATE_ENDS)
        self.name_state(optimizer)

    @unfailing
    def name_unfinished(self):
        """Of an update that raised, as when memory ran out in it: what it has made until then."""
        optimizer = self.updating and self.updating()
        self.updating = None
        if optimizer is not None:
            self.name_state(optimizer)

    def name_state(self, optimizer):
        for parameter, state in list(optimizer.state.items()):
            name = self.parameters.get(parameter, "") if self.is_tensor(parameter) else ""
            for key, tensor in tensors_by_key(state, self.torch.Tensor):
                whose = f"{name}.{key}" if name else str(key)
                if self.is_tensor(parameter) and parameter.device != tensor.device:
                    whose += ELSEWHERE + str(parameter.device)
                self.name(tensor, OPTIMIZER_STATE, whose)

    def is_tensor(self, value):
        return isinstance(value, self.torch.Tensor)

    def parameters_of(self, optimizer):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if self.is_tensor(parameter):
                    yield parameter


def is_generating():
    frame = sys._getframe(1)
    for _ in range(DEEPEST):
        frame = frame.f_back
        if frame is None:
            return False
        if frame.f_code.co_name == "generate":
            return True
    return False


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


def tensors_in(value, kind, depth=0):
    if isinstance(value, kind):
        yield value
    elif depth < DEEPEST and isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part, kind, depth + 1)
    elif depth < DEEPEST and isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part, kind, depth + 1)


def tensors_by_key(state, kind):
    if isinstance(state, dict):
        for key, value in state.items():
            for tensor in tensors_in(value, kind):
                yield key, tensor
