"""What the card that is there, real or emulated, permits while a stream is being captured into a CUDA graph. Prints a line of JSON for each
deed: what came of it, of the end of the capture, of a synchronize after it, and of the graph's replay ("ok", or CUDA's words).

usage: captures.py           each deed in a process of its own, as an error may outlast its capture
"""

import json
import os
import re
import threading

import torch

WORDS = re.compile(r"CUDA error: ([^\n]*)")


def said_of(deed):
    try:
        deed()
    except Exception as error:
        found = WORDS.search(str(error))
        return found[1] if found else f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
    return "ok"


class Deeds:
    """Each by the name of its method, underscores for spaces."""

    def __init__(self):
        self.other, self.before, self.captured = torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()
        self.before.record()
        self.host, self.pinned = torch.ones(8), torch.ones(8).pin_memory()
        self.there = torch.ones(8, device="cuda")

    def nothing(self):
        pass

    def synchronize_the_device(self):
        torch.cuda.synchronize()

    def synchronize_the_device_in_another_thread(self):
        said = []
        thread = threading.Thread(target=lambda: said.append(said_of(torch.cuda.synchronize)))
        thread.start()
        thread.join()
        if said[0] != "ok":
            raise RuntimeError(f"CUDA error: {said[0]}")

    def synchronize_the_captured_stream(self):
        torch.cuda.current_stream().synchronize()

    def query_the_captured_stream(self):
        torch.cuda.current_stream().query()

    def synchronize_another_stream(self):
        self.other.synchronize()

    def query_another_stream(self):
        self.other.query()

    def synchronize_an_event_from_before(self):
        self.before.synchronize()

    def query_an_event_from_before(self):
        self.before.query()

    def synchronize_a_captured_event(self):
        self.captured.record()
        self.captured.synchronize()

    def query_a_captured_event(self):
        self.captured.record()
        self.captured.query()

    def read_a_number(self):
        self.there[0].item()

    def copy_to_the_host(self):
        self.there.cpu()

    def copy_from_pageable_memory(self):
        self.there.copy_(self.host)

    def copy_from_page_locked_memory(self):
        self.there.copy_(self.pinned)

    def copy_from_page_locked_memory_without_waiting(self):
        self.there.copy_(self.pinned, non_blocking=True)

    def allocate_1_GiB(self):
        torch.empty(1 << 30, dtype=torch.int8, device="cuda")

    def allocate_page_locked_memory(self):
        torch.empty(1 << 24, dtype=torch.int8, pin_memory=True)

    def empty_cache(self):
        torch.cuda.empty_cache()

    def mem_get_info(self):
        torch.cuda.mem_get_info()

    def allocate_on_another_stream(self):
        with torch.cuda.stream(self.other):
            self.there.clone()

    def allocate_on_another_stream_and_wait_for_it(self):
        with torch.cuda.stream(self.other):
            self.there.clone()
            self.other.synchronize()

    def random_numbers(self):
        torch.randn(8, device="cuda")

    def nonzero(self):
        self.there.nonzero()

    def begin_a_second_capture(self):
        torch.cuda.CUDAGraph().capture_begin()


def outcomes_of(name):
    deeds = Deeds()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.ones(8, device="cuda").sum()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        during = said_of(getattr(deeds, name))
        end = said_of(graph.capture_end)
    return [during, end, said_of(torch.cuda.synchronize), said_of(graph.replay) if end == "ok" else None]


def in_a_process(name):
    """A fork: the parent has not used the card."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        with open(writes, "w", encoding="utf-8") as file:
            json.dump(outcomes_of(name), file)
        os._exit(0)
    os.close(writes)
    with open(reads, encoding="utf-8") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    return json.loads(said) if said else f"exit code {os.waitstatus_to_exitcode(status)}"


if __name__ == "__main__":
    for name in (name for name in vars(Deeds) if not name.startswith("_")):
        print(json.dumps({name.replace("_", " "): in_a_process(name)}), flush=True)
