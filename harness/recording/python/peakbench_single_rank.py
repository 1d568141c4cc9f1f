"""A single emulated rank of a world that does not exist. The other ranks are taken to be like it.

NCCL is the emulated card's (emulator/nccl). This is what torch.distributed does without it: the rendezvous with its store, Gloo, and what one rank
gives to or has of the others.
"""
import ctypes
import functools
import importlib
import os
import sys
from urllib.parse import parse_qs, urlparse

NAME_BYTES = 128  # of ncclUniqueId


def begin(torch):
    if not torch.distributed.is_available():
        return
    c10d = importlib.import_module("torch.distributed.distributed_c10d")
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    for scheme in ("env", "tcp", "file"):
        rendezvous._rendezvous_handlers[scheme] = functools.partial(meet, c10d.Store)
    if c10d.is_gloo_available():
        c10d.ProcessGroupGloo = gloo_of_one()
    for make in (gather, scatter, broadcast_object_list, scatter_object_list):
        own = make(c10d, getattr(c10d, make.__name__))
        setattr(c10d, make.__name__, own)
        setattr(torch.distributed, make.__name__, own)


def meet(Store, url, *_, **__):
    """As the handlers of torch/distributed/rendezvous.py: gives a store, the rank and the size of the world."""
    asked = parse_qs(urlparse(url).query)

    def number(name):
        text = asked[name][0] if name in asked else os.environ.get(name.upper())
        if text is None:
            raise ValueError(f"{name.upper()} is not set; `peakbench emulate --world N --rank R` sets it")
        return int(text)

    rank, ranks = number("rank"), number("world_size")
    world = os.environ.get("PEAKBENCH_EMULATED_WORLD", f"{rank} of {ranks}")
    if world != f"{rank} of {ranks}":
        raise ValueError(f"this is rank {rank} of {ranks}, and `peakbench emulate --world` makes it rank {world}: start the script without torchrun")
    os.environ["TORCH_NCCL_RANKS_PER_ROOT"] = str(ranks)  # else those of several roots exchange their names
    for watch in ("ENABLE_MONITORING", "DUMP_ON_TIMEOUT", "PROPAGATE_ERROR"):  # threads that ask the store, also while Python ends
        os.environ[f"TORCH_NCCL_{watch}"] = "0"
    ctypes.CDLL(None).peakbench_emulator_is_alone(rank, ranks)
    yield store_of_one(Store), rank, ranks


KEPT = []  # stores: PyTorch has one without its methods where Python drops it


def store_of_one(Store):
    """Waits for nobody. What other ranks would have left in it is the name of a communicator."""

    class StoreOfOne(Store):
        def __init__(self):
            super().__init__()
            self.values = {}

        def set(self, key, value):
            self.values[key] = value.encode() if isinstance(value, str) else bytes(value)

        def get(self, key):
            return self.values.get(key, bytes(NAME_BYTES))

        def add(self, key, value):
            self.values[key] = str(int(self.values.get(key, b"0")) + value).encode()
            return int(self.values[key])

        def check(self, keys):
            return all(key in self.values for key in keys)

        def wait(self, *_):
            pass

    KEPT.append(StoreOfOne())
    return KEPT[-1]


def gloo_of_one():
    """In place of ProcessGroupGloo, which connects to every rank: PyTorch's FakeProcessGroup, which gathers what this rank gives."""
    fake = importlib.import_module("torch._C._distributed_c10d").FakeProcessGroup
    fake._set_sequence_number_for_group = lambda self: None

    class Gloo(type):
        def __instancecheck__(cls, one):
            return isinstance(one, fake)

    class ProcessGroupGloo(metaclass=Gloo):
        def __new__(cls, store, rank, size, *_, **__):
            return getattr(fake, "_create_internal", fake)(rank, size)

    return ProcessGroupGloo


def gather(c10d, original):
    @functools.wraps(original)
    def gather(tensor, gather_list=None, *args, **kwargs):
        work = original(tensor, gather_list, *args, **kwargs)
        for one in gather_list or ():
            one.copy_(tensor)
        return work

    return gather


def scatter(c10d, original):
    @functools.wraps(original)
    def scatter(tensor, scatter_list=None, src=None, group=None, *args, **kwargs):
        work = original(tensor, scatter_list, src, group, *args, **kwargs)
        if scatter_list:
            tensor.copy_(scatter_list[c10d.get_rank(group)])
        return work

    return scatter


def broadcast_object_list(c10d, original):
    @functools.wraps(original)
    def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
        own = c10d.get_rank(group)
        if own != group_src if group_src is not None else c10d.get_rank() != (src or 0):
            say_once(f"rank {c10d.get_rank()} keeps its own objects in broadcast_object_list: the rank that gives them does not run")
        return original(object_list, group=group, device=device, group_src=own)

    return broadcast_object_list


def scatter_object_list(c10d, original):
    @functools.wraps(original)
    def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, *args, **kwargs):
        if scatter_object_input_list is None:
            return say_once(f"rank {c10d.get_rank()} gets no object of scatter_object_list: the rank that gives them does not run")
        return original(scatter_object_output_list, scatter_object_input_list, *args, **kwargs)

    return scatter_object_list


@functools.lru_cache(maxsize=None)
def say_once(sentence):
    print(f"peakbench: {sentence}", file=sys.stderr)
