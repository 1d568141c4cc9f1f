"""Strategies by name, each a few lines over a library's own functions (docs/reference/python-strategies.md).

``peakbench run --program FILE.py:MODEL --strategy lora+checkpointing`` finds them here where the file has none of that name. A name is
typed with ``-``, and with ``_`` in Python. PyTorch is imported.
"""

from peakbench.strategies.activations import autocast, checkpointing, compile, liger, save_on_cpu
from peakbench.strategies.adapters import dora, lora, qlora
from peakbench.strategies.optimizers import (
    accumulation,
    adamw_4bit,
    adamw_8bit,
    baseline,
    foreach_off,
    fused_in_backward,
    fused_optimizer,
    paged,
)
from peakbench.strategies.pipelines import pipeline
from peakbench.strategies.ranks import context_parallel, ddp, fsdp, hsdp, tensor_parallel, zero_1

# In the order of the documentation.
__all__ = [
    "baseline",
    "foreach_off",
    "fused_optimizer",
    "adamw_8bit",
    "adamw_4bit",
    "paged",
    "fused_in_backward",
    "accumulation",
    "checkpointing",
    "save_on_cpu",
    "autocast",
    "compile",
    "liger",
    "lora",
    "dora",
    "qlora",
    "ddp",
    "zero_1",
    "fsdp",
    "hsdp",
    "tensor_parallel",
    "pipeline",
    "context_parallel",
]
