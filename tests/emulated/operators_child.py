"""Operators of PyTorch's OpInfo table on an emulated card, each beside the CPU's own run of the same samples. A process that may crash:
operators.py starts it, for some operators at a time.

usage: peakbench emulate -- PYTHON operators_child.py OUT SAMPLES NAME...     appends a line of JSON to OUT before and after each
       PYTHON operators_child.py --list                                      prints the names of the table
"""

import ctypes
import json
import re
import sys
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

# The first that an operator has on the card.
DTYPES = (torch.float32, torch.int64, torch.complex64, torch.float16, torch.bfloat16, torch.bool, torch.float8_e4m3fn)
CARD = torch.device("cuda")
# Their further tensors say where to cut, and are the host's.
ARGUMENTS_ON_THE_HOST = ("tensor_split",)
# PyTorch's own words for what it does on the CPU alone.
ONLY_ON_THE_CPU = re.compile(r"not supported on CUDA|from the '\w*CUDA' backend")


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def ledger():
    """What the stand-ins have recorded of this process so far."""
    report = ctypes.CDLL(None).peakbench_emulator_report
    report.restype = ctypes.c_char_p
    return json.loads(report())


class Reads:
    """Which reads of the card were not known since the last question."""

    def __init__(self):
        self.unknown = self._unknown()
        self.refused = self._refused()

    @staticmethod
    def _unknown():
        counts = {}
        for row in ledger()["read_backs"]:
            calls = row["zero_calls"] + row["uncertain_calls"] + row["substitute_calls"]
            if calls:
                counts[row["kind"]] = counts.get(row["kind"], 0) + calls
        return counts

    @staticmethod
    def _refused():
        return {row["name"]: row["calls"] for row in ledger()["refused"]}

    def since(self):
        """Kinds of reads that were not known, and functions that were refused."""
        before, refused = self.unknown, self.refused
        self.unknown, self.refused = self._unknown(), self._refused()
        kinds = [kind or "bytes" for kind, calls in self.unknown.items() if calls > before.get(kind, 0)]
        return kinds, [name for name, calls in self.refused.items() if calls > refused.get(name, 0)]


def copied(tensor):
    if tensor.is_cuda:
        return tensor
    if tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        return tensor.to(CARD)
    storage = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).to(CARD).untyped_storage()
    return torch.empty(0, dtype=tensor.dtype, device=CARD).set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def on_card(value):
    """The same arguments for the card: tensors by a copy of their whole storage from the host, devices by name."""
    if isinstance(value, torch.Tensor):
        return copied(value.detach()).requires_grad_(value.requires_grad)
    if isinstance(value, torch.Generator):
        return torch.Generator(CARD).manual_seed(value.initial_seed())
    if isinstance(value, torch.device) or value == "cpu":
        return CARD
    return value


def moved(op, sample):
    """The sample for the card."""
    card = sample.transform(lambda value: value)
    card.input = pytree.tree_map(on_card, sample.input)
    if op.name not in ARGUMENTS_ON_THE_HOST:
        card.args, card.kwargs = pytree.tree_map(on_card, (sample.args, sample.kwargs))
    return card


def tensors_in(tree):
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def describe(leaf):
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)
    text = f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
    return text if leaf.layout == torch.strided else f"{text} {str(leaf.layout).removeprefix('torch.')}"


def parts(tensor):
    """Of a sparse tensor the dense ones that it is made of."""
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return tensor.unbind() if tensor.is_nested else [tensor]


def close(a, b):
    a = a.cpu()
    if a.is_quantized:
        a, b = a.dequantize(), b.dequantize()
    if a.is_floating_point() or a.is_complex():
        tolerance = 1e-2 if torch.finfo(a.dtype).bits < 32 else 1e-4
        kind = torch.complex128 if a.is_complex() else torch.float64
        return torch.allclose(a.to(kind), b.to(kind), rtol=tolerance, atol=tolerance, equal_nan=True)
    return torch.equal(a, b)


class Findings:
    """What differs between the CPU and the card, of all samples of an operator; the first of each kind in words."""

    def __init__(self):
        self.first = {}
        self.known = self.unknown = self.values = self.only_cpu = 0

    def add(self, kind, text):
        self.first.setdefault(kind, text)

    def compare(self, what, cpu, card, reads):
        cpu, card = pytree.tree_leaves(cpu), pytree.tree_leaves(card)
        if len(cpu) != len(card):
            return self.add("sizes", f"{what}: {len(cpu)} results on the CPU, {len(card)} on the card")
        for one, other in zip(cpu, card, strict=True):
            if one is None or other is None:  # a gradient that is nothing, or zeros
                continue
            if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
                self.compare_tensors(what, one.detach(), other.detach(), reads)
            elif not isinstance(one, (torch.device, torch.Generator)) and one != other and one == one:
                kinds, _ = reads.since()
                self.add("unknown numbers" if kinds else "numbers", f"{what}: {one!r} on the CPU, {other!r} on the card")

    def compare_tensors(self, what, cpu, card, reads):
        if describe(cpu) != describe(card):
            return self.add("sizes", f"{what}: {describe(cpu)} on the CPU, {describe(card)} on the card")
        if cpu.layout == torch.strided and not cpu.is_nested and cpu.stride() != card.stride() and cpu.numel() > 1:
            self.add("strides", f"{what}: {describe(cpu)} has strides {cpu.stride()} on the CPU, {card.stride()} on the card")
        for one, other in zip(parts(cpu), parts(card), strict=True):
            if one.shape != other.shape:
                return self.add("sizes", f"{what}: {describe(cpu)} of {describe(one)} on the CPU, {describe(other)} on the card")
            self.compare_values(what, one, other, reads)

    def compare_values(self, what, cpu, card, reads):
        if not cpu.numel() or not card.is_cuda:
            return
        reads.since()
        read = card.resolve_conj().resolve_neg().cpu()
        kinds, _ = reads.since()
        self.values += 1
        if kinds:
            self.unknown += 1
        elif close(cpu.resolve_conj().resolve_neg(), read):
            self.known += 1
        else:
            self.add("values", f"{what}: {describe(cpu)} is said to be known, and is not the CPU's")


def run(op, sample):
    return op(sample.input, *sample.args, **sample.kwargs)


def same_as_fake(op, card, out):
    """Whether PyTorch's own tensors without memory, told to be on a card, come out with the same sizes."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = card.transform(lambda value: mode.from_tensor(value) if isinstance(value, torch.Tensor) else value)
        fake_out, wrong = attempt(run, op, fake)
    return not wrong and [describe(t) for t in tensors_in(fake_out)] == [describe(t) for t in tensors_in(out)]


def backward(sample, out, gradients=None):
    """The results that have a gradient, the gradients put into them, and those of the arguments."""
    results = [t for t in tensors_in(sample.output_process_fn_grad(out)) if t.requires_grad]
    inputs = [t for t in tensors_in((sample.input, sample.args, sample.kwargs)) if t.requires_grad]
    if not results or not inputs:
        return None, None
    if gradients is None:
        gradients = [torch.ones_like(t) for t in results]
    else:
        gradients = [gradient.to(CARD) for gradient in gradients]
    return gradients, torch.autograd.grad(results, inputs, gradients, allow_unused=True)


def attempt(function, *arguments):
    try:
        return function(*arguments), None
    except Exception as error:  # noqa: BLE001  whatever an operator raises is a finding
        return None, f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


def try_sample(op, sample, findings, reads):
    """False where the CPU does not run it either."""
    card = moved(op, sample)
    reads.since()
    torch.manual_seed(1)
    out, wrong = attempt(run, op, sample)
    card_out, card_wrong = attempt(run, op, card)
    kinds, refused = reads.since()
    for name in refused:
        findings.add("refused", name)
    if "size" in kinds:
        findings.add("unknown size", sample.summary()[:200])
    if card_wrong and ONLY_ON_THE_CPU.search(card_wrong):
        findings.only_cpu += 1
        return False
    if card_wrong and not wrong:
        findings.add("failed", f"{card_wrong[:300]}")
    if card_wrong or wrong:
        return not wrong
    findings.compare("result", out, card_out, reads)
    if "sizes" in findings.first and same_as_fake(op, card, card_out):
        findings.first["sizes of PyTorch"] = findings.first.pop("sizes")
    done, wrong = attempt(backward, sample, out)
    if not wrong and done[0] is not None:
        try_backward(findings, reads, card, card_out, *done)
    return True


def try_backward(findings, reads, card, card_out, put_in, gradients):
    reads.since()
    done, card_wrong = attempt(backward, card, card_out, put_in)
    _, refused = reads.since()
    for name in refused:
        findings.add("refused", name)
    if card_wrong:
        findings.add("failed", f"backward: {card_wrong[:300]}")
    else:
        findings.compare("gradient", gradients, done[1], reads)


def spread(samples, most):
    """At most so many of them, evenly."""
    if len(samples) <= most:
        return samples
    return [samples[i * len(samples) // most] for i in range(most)]


def try_operator(op, most):
    dtypes = op.supported_dtypes("cuda")
    if not dtypes:
        return {"only on the CPU": "PyTorch has it for no dtype on a card"}
    dtype = next((dtype for dtype in DTYPES if dtype in dtypes), None) or sorted(dtypes, key=str)[0]
    grad = dtype in op.supported_backward_dtypes("cuda") and op.supports_autograd
    torch.manual_seed(0)
    samples, wrong = attempt(lambda: list(op.sample_inputs("cpu", dtype, requires_grad=grad)))
    if wrong:
        return {"failed": f"its samples: {wrong}"}
    findings, reads = Findings(), Reads()
    ran = sum(try_sample(op, sample, findings, reads) for sample in spread(samples, most))
    torch.cuda.synchronize()
    if not ran and findings.only_cpu:
        return {"only on the CPU": "PyTorch refuses every sample on a card"}
    return {"dtype": str(dtype).removeprefix("torch."), "samples": ran, "compared": findings.values, "known": findings.known,
            "unknown": findings.unknown, **findings.first}  # fmt: skip


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--list":
        return print("\n".join(name_of(op) for op in op_db))
    operators = {name_of(op): op for op in op_db}
    torch.zeros(1, device=CARD)
    with open(sys.argv[1], "a", encoding="utf-8", buffering=1) as out:
        for name in sys.argv[3:]:
            print(json.dumps({"name": name}), file=out)
            found, wrong = attempt(try_operator, operators[name], int(sys.argv[2]))
            print(json.dumps({"name": name, **(found or {"failed": wrong})}), file=out)


if __name__ == "__main__":
    main()
