"""Peak memory of stock PyTorch, to the byte, on the CPU and on a CUDA card (a real or an emulated one).

CPU: PyTorch's profiler reports every allocation and free of the CPU allocator, with the bytes asked for, from before the model is
built; nothing is sampled. CUDA: torch.cuda.memory_stats, whose peaks are reset at each phase.
"""

import contextlib
import gc

import torch

MARK = "peakbench:"


class CpuMemory:
    """Use: `with memory: ...`, inside it `with memory.phase("forward", step): ...`; afterwards `memory.result()`."""

    def __init__(self):
        # What torch.profiler.profile is made of, with one cycle and without its warning of that. Nothing asks for acc_events, with which objects of
        # Python are made of every event: that takes longer than the training.
        self._profile = torch.autograd.profiler.profile(use_kineto=True, profile_memory=True)

    def __enter__(self):
        gc.collect()  # what was there before is freed before, and not meanwhile
        self._profile.__enter__()
        return self

    def __exit__(self, *error):
        return self._profile.__exit__(*error)

    def phase(self, name, step=None):
        return torch.profiler.record_function(f"{MARK}{name}:{'' if step is None else step}")

    def events(self):
        """Kineto's, of the whole of it."""
        return self._profile.kineto_results.events()

    def result(self):
        events = self.events()
        phases = [
            (e.start_ns(), e.end_ns(), *e.name()[len(MARK) :].split(":")) for e in events if e.name().startswith(MARK)
        ]
        changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
        changes.sort(key=lambda change: change[0])
        return summarise(changes, sorted(phases))


def summarise(changes, phases):
    """changes: (time, signed bytes) in order; phases: (begin, end, name, step) in order, step "" outside the steps."""
    alive, base, peak, peak_at = 0, None, 0, None
    by_phase, by_step = {}, {}

    def note(name, step):
        by_phase[name] = max(by_phase.get(name, 0), alive)
        if step:
            by_step[step] = max(by_step.get(step, 0), alive)

    remaining = iter(changes)
    change = next(remaining, None)
    for (_, _, name, step), (until, *_) in zip(phases, [*phases[1:], (float("inf"),)]):
        if step and base is None:
            base = peak = alive
        note(name, step)
        while change is not None and change[0] < until:
            alive += change[1]
            note(name, step)
            if step and alive > peak:
                peak, peak_at = alive, (name, int(step))
            change = next(remaining, None)
    return {
        "base_bytes": base,
        "peak_requested_bytes": peak,
        "peak_allocated_bytes": peak,
        "peak_phase": peak_at and peak_at[0],
        "peak_step": peak_at and peak_at[1],
        "phases": by_phase,
        "steps": [by_step[step] for step in sorted(by_step, key=int)],
        "end_bytes": alive,
        "events": len(changes),
    }


class CudaMemory:
    """The same for a CUDA card: requested, allocated and reserved bytes as its caching allocator counts them."""

    KINDS = {"requested": "requested_bytes", "allocated": "allocated_bytes", "reserved": "reserved_bytes"}

    def __init__(self):
        self._peaks = []
        self._base = None

    def __enter__(self):
        torch.cuda.init()
        torch.cuda.reset_peak_memory_stats()
        return self

    def __exit__(self, *error):
        return False

    @contextlib.contextmanager
    def phase(self, name, step=None):
        if step is not None and self._base is None:
            self._base = self._read("current")
        torch.cuda.reset_peak_memory_stats()
        yield
        if not torch.cuda.is_current_stream_capturing():  # a capture does not bear it
            torch.cuda.synchronize()
        self._peaks.append((name, step, self._read("peak")))

    def _read(self, which):
        stats = torch.cuda.memory_stats()
        return {kind: stats[f"{key}.all.{which}"] for kind, key in self.KINDS.items()}

    def result(self):
        steps = [(name, step, peak) for name, step, peak in self._peaks if step is not None]
        name, step, _ = max(steps, key=lambda entry: entry[2]["allocated"])
        result = {f"peak_{kind}_bytes": max(peak[kind] for _, _, peak in steps) for kind in self.KINDS}
        by_phase = {}
        for phase, _, peak in self._peaks:
            by_phase[phase] = max(by_phase.get(phase, 0), peak["allocated"])
        return result | {
            "base_bytes": self._base["allocated"],
            "base_requested_bytes": self._base["requested"],
            "base_reserved_bytes": self._base["reserved"],
            "peak_phase": name,
            "peak_step": step,
            "phases": by_phase,
            "steps": [max(p["allocated"] for _, s, p in steps if s == k) for k in sorted({s for _, s, _ in steps})],
            "device_name": torch.cuda.get_device_name(),
        }


class NoMemory:
    """For timing: measures nothing and costs nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def phase(self, name, step=None):
        return contextlib.nullcontext()

    def result(self):
        return None


def recorder(device, wanted=True):
    gc.collect()
    if not wanted:
        return NoMemory()
    return CudaMemory() if torch.device(device).type == "cuda" else CpuMemory()
