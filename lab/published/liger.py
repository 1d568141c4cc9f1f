"""Liger-Kernel's memory benchmarks: one operator, forward and backward, by Liger's Triton kernels or by plain PyTorch.

Rebuilt after benchmark/scripts in github.com/linkedin/Liger-Kernel as it was when the figures were taken (b5672a15 for those of version
0.2.1, 6b2fd02d for ORPO, 90fb5e4a for the fused linear cross entropy). Its `_test_memory` takes the median, over ten repetitions without
a warm-up, of torch.cuda.max_memory_allocated(), which is reset before each; gradients are kept from one repetition to the next.

usage: liger.py --kernel KERNEL --provider liger|huggingface [--mode full|forward|backward] --x VALUE [--tokens T]

--x is the value on the benchmark's x axis. Prints the peak in bytes and its phase as JSON.
"""

import argparse
import json
import statistics

import torch
from torch import nn
from torch.nn import functional

REPETITIONS = 10
BF16 = torch.bfloat16


class LlamaRMSNorm(nn.Module):
    """As in the benchmark: the weight stays in fp32."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


def cross_entropy(given):
    """8 x 2048 tokens over `x` words, in fp32."""
    logits = torch.randn(8 * 2048, given.x, requires_grad=True, device="cuda")
    target = torch.randint(given.x, (8 * 2048, 1), device="cuda").squeeze(1)
    if given.provider == "liger":
        from liger_kernel.transformers.cross_entropy import LigerCrossEntropyLoss as Loss
    else:
        Loss = nn.CrossEntropyLoss
    loss = Loss()
    return lambda: loss(logits, target), lambda y: y.backward()


def fused_linear_cross_entropy(given):
    """`x` tokens of width 4096 over Llama 3's 128,256 words; the benchmark builds the heads of both providers."""
    # The function that Liger's module calls: that module's package imports trl.
    from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction

    heads = [nn.Linear(4096, 128256, bias=False, dtype=BF16).to("cuda") for _ in ("huggingface", "liger")]
    x = torch.randn(given.x, 4096, requires_grad=True, dtype=BF16, device="cuda")
    target = torch.randint(128256, (given.x, 1), dtype=torch.long, device="cuda").squeeze(1)
    if given.provider == "liger":
        forward = lambda: LigerFusedLinearCrossEntropyFunction.apply(x, heads[1].weight, target)
    else:
        forward = lambda: functional.cross_entropy(heads[0](x), target)
    return forward, lambda y, heads=heads: y.backward()


def gated(given, batch, activation):
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaMLP

    if given.provider == "huggingface":
        MLP = LlamaMLP
    elif given.kernel == "geglu":
        from liger_kernel.transformers.geglu import LigerGEGLUMLP as MLP
    else:
        from liger_kernel.transformers.swiglu import LigerSwiGLUMLP as MLP
    x = torch.randn(batch, given.x, 4096, device="cuda", dtype=BF16, requires_grad=True)
    layer = MLP(config=LlamaConfig(hidden_size=4096, intermediate_size=11008, hidden_act=activation)).to("cuda").to(BF16)
    if given.mode == "forward":
        return lambda: layer(x), None
    if given.mode == "backward":
        gradient, output = torch.randn_like(x), layer(x)
        return None, lambda _: output.backward(gradient, retain_graph=True)
    return lambda: layer(x), lambda y: y.backward(torch.randn_like(y), retain_graph=True)


def geglu(given):
    return gated(given, batch=8, activation="gelu_pytorch_tanh")


def swiglu(given):
    return gated(given, batch=4, activation="silu")


def rms_norm(given):
    """2048 rows of width `x`; the benchmark builds both providers' modules."""
    from liger_kernel.transformers.rms_norm import LigerRMSNorm

    modules = {"liger": LigerRMSNorm(hidden_size=given.x, eps=1e-6).to("cuda"), "huggingface": LlamaRMSNorm(given.x).to("cuda")}
    x = torch.randn(2048, given.x, dtype=BF16, device="cuda")
    gradient = torch.randn_like(x)
    x.requires_grad_(True)
    return lambda: modules[given.provider](x), lambda y: y.backward(gradient, retain_graph=True)


def rope(given):
    """32 heads of queries and 8 of keys; `x` is the hidden size where --tokens is given, else the tokens at a hidden size of 8192."""
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    width, tokens = (given.x, given.tokens) if given.tokens else (8192, given.x)
    head = width // 32
    rotary = LlamaRotaryEmbedding(head, device="cuda")
    q, k = (torch.randn((1, tokens, heads, head), device="cuda", requires_grad=True, dtype=BF16).transpose(1, 2) for heads in (32, 8))
    gradients = torch.randn_like(q, dtype=BF16), torch.randn_like(k)
    positions = torch.arange(tokens, device="cuda", dtype=torch.long).unsqueeze(0)
    cos, sin = rotary(k, positions)
    if given.provider == "liger":
        from liger_kernel.transformers.rope import liger_rotary_pos_emb as rotate
    else:
        rotate = apply_rotary_pos_emb
    # The rotary module's buffer lives as long as the benchmark of this value.
    forward = lambda rotary=rotary: rotate(q, k, cos, sin, positions)
    return forward, lambda y: torch.autograd.grad(y, (q, k), gradients, allow_unused=True, retain_graph=True)


def orpo_of_trl(x, weight, target):
    """TRL's odds ratio loss, as Liger's test has it: fp32 logits, of chosen and rejected together. What has a name there has one here, and
    lives as long."""
    outputs = x @ weight.t()
    logits = outputs.float()
    chosen = x.shape[0] // 2
    nll = functional.cross_entropy(logits[:chosen].view(-1, logits.shape[-1]), target[:chosen].view(-1))
    counted = target != -100
    labels = torch.where(target == -100, 0, target)
    of_tokens = torch.gather(logits.log_softmax(-1), dim=2, index=labels.unsqueeze(2)).squeeze(2)
    of_answers = (of_tokens * counted).sum(-1) / counted.sum(-1)
    good, bad = of_answers[:chosen], of_answers[chosen:]
    odds = (good - bad) - (torch.log1p(-torch.exp(good)) - torch.log1p(-torch.exp(bad)))
    return nll - (0.1 * functional.logsigmoid(odds)).mean()


def fused_linear_orpo_loss(given):
    """`x` sequences of --tokens tokens; the benchmark builds the heads of both providers."""
    from liger_kernel.chunked_loss.orpo_loss import LigerFusedLinearORPOFunction

    heads = [nn.Linear(4096, 128256, bias=False, dtype=BF16).to("cuda") for _ in ("huggingface", "liger")]
    x = torch.randn(given.x, given.tokens, 4096, requires_grad=True, dtype=BF16, device="cuda")
    target = torch.randint(128256, (given.x, given.tokens), dtype=torch.long, device="cuda")
    if given.provider == "liger":
        forward = lambda: LigerFusedLinearORPOFunction.apply(x, heads[1].weight, target)
    else:
        forward = lambda: orpo_of_trl(x, heads[0].weight, target)
    return forward, lambda y, heads=heads: (y[0] if isinstance(y, tuple) else y).backward()


KERNELS = {build.__name__: build for build in
           (cross_entropy, fused_linear_cross_entropy, geglu, swiglu, rms_norm, rope, fused_linear_orpo_loss)}  # fmt: skip
# The first value on the x axis, of the kernels whose providers or modes multiply matrices in different threads.
SMALLEST = {"fused_linear_cross_entropy": 4096, "fused_linear_orpo_loss": 2, "geglu": 1024}


def run_before(given):
    """The benchmark times all providers and modes in the same process first. What stays of that are cuBLAS's workspaces, one of the forward and
    one of the backward thread: a forward alone has none of the latter, nor have Liger's fused losses, whose backward multiplies nothing."""
    other = argparse.Namespace(**{**vars(given), "provider": "huggingface", "mode": "full", "x": SMALLEST[given.kernel]})
    forward, backward = KERNELS[given.kernel](other)
    backward(forward())


def peaks_of_once(forward, backward):
    """The peaks of one repetition, by phase. The output lives until its end."""
    peaks = {}
    torch.cuda.reset_peak_memory_stats()
    output = None
    if forward:
        output = forward()
        peaks["forward"] = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
    if backward:
        backward(output)
        peaks["backward"] = torch.cuda.max_memory_allocated()
    return peaks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", choices=KERNELS, required=True)
    parser.add_argument("--provider", choices=("liger", "huggingface"), required=True)
    parser.add_argument("--mode", choices=("full", "forward", "backward"), default="full")
    parser.add_argument("--x", type=int, required=True)
    parser.add_argument("--tokens", type=int)
    given = parser.parse_args()
    if given.kernel in SMALLEST:
        run_before(given)
    forward, backward = KERNELS[given.kernel](given)
    repetitions = [peaks_of_once(forward, backward) for _ in range(REPETITIONS)]
    peak = int(statistics.median(max(peaks.values()) for peaks in repetitions))
    phase = max(repetitions[-1], key=repetitions[-1].get)
    print(json.dumps({"bytes": peak, "phase": phase}))


if __name__ == "__main__":
    main()
