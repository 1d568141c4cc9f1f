"""The loss of Gemma 2 (2B) over 8,192 tokens, bf16, logits capped at 30 by tanh, in plain PyTorch: the baseline of Apple's Cut
Cross-Entropy.

Rebuilt after benchmark/ in github.com/apple/ml-cross-entropy (d42911f): `Stats.measure` gives by how much the peak of allocated memory
lies above what was allocated before the call, which is the embeddings, the classifier and the labels. It warms each method up once.

usage: cross_entropy.py [--gradient]

--gradient  the loss and its gradients ("loss-fw-bw"); otherwise the loss alone, whose graph is built ("loss-fw")
"""

import argparse
import gc
import json

import torch
from torch.nn import functional

TOKENS, WIDTH, WORDS, SOFTCAP = 8192, 2304, 256000, 30.0


def loss_of(embedding, classifier, targets):
    logits = embedding @ classifier.T
    logits = torch.tanh(logits / SOFTCAP) * SOFTCAP
    return functional.cross_entropy(logits.float(), targets, ignore_index=-100)


def growth(inputs, gradient):
    """The growth of the peak, and the phase that it is in."""
    inputs[0].grad = inputs[1].grad = None
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    loss = loss_of(*inputs)
    forward = torch.cuda.max_memory_allocated() - before
    if not gradient:
        return forward, "forward"
    loss.backward()
    whole = torch.cuda.max_memory_allocated() - before
    return whole, "backward" if whole > forward else "forward"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gradient", action="store_true")
    given = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    embedding = torch.randn(TOKENS, WIDTH, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    classifier = torch.randn(WORDS, WIDTH, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    targets = torch.randint(WORDS, (TOKENS,), device="cuda")
    for _ in ("warm-up", "measured"):
        peak, phase = growth((embedding, classifier, targets), given.gradient)
    print(json.dumps({"bytes": peak, "phase": phase}))


if __name__ == "__main__":
    main()
