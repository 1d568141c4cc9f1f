"""What published formulas and tools say that a training takes: each as its own documentation has it, with nothing tuned.

A predictor is asked as its user would ask it. What it does not take (a batch size, a length, pure bf16) it is not told, and where its question is
another one than a case's it gives no figure.
"""

import dataclasses
import importlib
import sys
from collections.abc import Callable

GIB = 1 << 30


@dataclasses.dataclass(frozen=True)
class Training:
    """One case: AdamW, one card, no checkpointing."""

    model: str
    parameters: int
    layers: int
    width: int
    mlp: int
    heads: int
    kv_heads: int
    vocabulary: int
    gated: bool  # three linear layers an MLP, not two
    rms: bool
    tied: bool
    batch: int
    sequence: int
    precision: str  # fp32; mixed: fp32 weights under autocast; bf16: weights, gradients and optimizer state in bf16

    @property
    def tokens(self):
        return self.batch * self.sequence


def accelerate(training):
    """Of the size of the weights alone. Its code is called; it has no row for pure bf16."""
    from accelerate.commands.estimate import estimate_training_usage

    word = {"fp32": "float32", "mixed": "bfloat16"}.get(training.precision)
    return max(estimate_training_usage(4 * training.parameters, word).values()) if word else None


def deepspeed(training, cards=1):
    """estimate_zero2_model_states_mem_needs without offloading: 4 bytes a parameter and 16 over all cards, without activations."""
    if training.precision != "mixed":
        return None
    return 4 * training.parameters + 16 * training.parameters // cards


def eleutherai(training):
    """calc_transformer_mem.py, with the flags that its help gives for the precision; parameters by its own count."""
    if training.precision == "bf16":
        return None  # 12 bytes a parameter for the optimizer, whatever is asked for
    width, layers = training.width, training.layers
    low = 2 if training.precision == "mixed" else 4
    parameters = (
        2 * training.vocabulary * width
        + width * training.sequence
        + 8 * width * layers
        + 2 * width
        + int(2 * (1 + training.kv_heads / training.heads) * layers * width * width)
        + (3 if training.gated else 2) * layers * width * training.mlp
    )
    states = parameters * ((2 if training.precision == "mixed" else 4) + 4 + 12)
    scores = (2 * low + 1) * training.heads * training.sequence / width
    return int(states + training.tokens * width * layers * (16 * low + 2 + scores))


def megatron(training):
    """theoretical_memory_usage.py without sequence parallelism, on one card: 18 bytes a parameter and activations in half precision."""
    if training.precision != "mixed":
        return None
    width = training.width
    norm = 1 if training.rms else 2
    attention = 2 * width * width * (1 + training.kv_heads / training.heads)
    layer = 2 * width * (training.mlp * (1.5 if training.gated else 1) + norm) + attention
    embedding = width * training.vocabulary
    parameters = layer * training.layers + norm * width + embedding * (1 if training.tied else 2)
    activations = 34 * training.tokens * width * training.layers + 8 * training.tokens + training.tokens * width
    activations += 2 * training.tokens * (training.vocabulary + width)
    return int(18 * parameters + 1.05 * activations)


def hugging_face(training):
    """The blog post's law, with the line that it fitted for activations: weights, two moments, and the larger of activations and of gradients with
    the optimizer's intermediates."""
    if training.precision == "mixed":
        return None
    size = 4 if training.precision == "fp32" else 2
    activations = (4.6894e-4 * training.parameters + 1.8494e6) * training.tokens
    return int(size * (3 * training.parameters + max(2 * training.parameters, activations)))


def llama_factory(training):
    """The table of its README: gigabytes a billion parameters."""
    if training.precision == "fp32":
        return None
    return int((18 if training.precision == "mixed" else 8) * training.parameters)


def kitsune(training, build, folder):
    """predict_memory() of torch-kitsune on the stock model, on the meta device. `build` makes it."""
    if training.precision == "mixed":
        return None
    import torch

    if folder not in sys.path:
        sys.path.insert(0, folder)
    predict = importlib.import_module("kitsune.predict")
    dtype = torch.float32 if training.precision == "fp32" else torch.bfloat16
    said = predict.predict_memory(build(training.model), input_shape=(training.sequence,), batch_size=training.batch, dtype=dtype,
                                  optimizer="adamw", training=True)  # fmt: skip
    return int(said.total_bytes)


@dataclasses.dataclass(frozen=True)
class Predictor:
    name: str
    url: str
    predict: Callable
    what: str  # it says of itself that it counts


PREDICTORS = (
    Predictor("accelerate estimate-memory", "https://huggingface.co/docs/accelerate/usage_guides/model_size_estimator", accelerate,
              "weights, gradients and Adam; batch size 1"),
    Predictor("DeepSpeed ZeRO-2 estimator", "https://deepspeed.readthedocs.io/en/latest/memory.html", deepspeed, "model states, no activations"),
    Predictor("EleutherAI cookbook", "https://github.com/EleutherAI/cookbook/blob/069ae2e/calc/calc_transformer_mem.py", eleutherai,
              "model states and activations"),
    Predictor("Megatron-LM theoretical memory", "https://github.com/NVIDIA/Megatron-LM/blob/00caa53/megatron/training/theoretical_memory_usage.py",
              megatron, "model states and activations"),
    Predictor("Hugging Face blog", "https://huggingface.co/blog/train_memory", hugging_face, "model states, activations by a fitted line"),
    Predictor("LLaMA-Factory's table", "https://github.com/hiyouga/LLaMA-Factory/blob/00409ff/README.md", llama_factory, "a rule of thumb by the number of parameters"),
    Predictor("torch-kitsune 0.7.0", "https://pypi.org/project/torch-kitsune/0.7.0/", kitsune, "all, with 15% for the allocator"),
)  # fmt: skip
