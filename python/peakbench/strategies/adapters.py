"""Adapters beside frozen weights."""

import importlib
from typing import Any

import torch
from torch import nn

from peakbench.strategies._offer import chosen, linear_layers, strategy

_PEFT = ("peft", "peft", "0.12")


@strategy("lora", needs=_PEFT)
def lora(model: nn.Module, rank: int = 8, alpha: float = 16, dropout: float = 0.0, targets: str = "auto", adapter_dtype: str = "fp32") -> nn.Module:
    """LoRA. https://huggingface.co/docs/peft/package_reference/lora

    ``targets``: names of layers, joined by ``:``. auto: peft's own for the architecture, else all linear layers but the output head.
    """
    return _adapted(model, targets, adapter_dtype, r=rank, lora_alpha=alpha, lora_dropout=dropout)


@strategy("dora", needs=_PEFT)
def dora(model: nn.Module, rank: int = 8, alpha: float = 16, targets: str = "auto", adapter_dtype: str = "fp32") -> nn.Module:
    """DoRA. https://huggingface.co/docs/peft/developer_guides/lora#weight-decomposed-low-rank-adaptation-dora"""
    return _adapted(model, targets, adapter_dtype, r=rank, lora_alpha=alpha, use_dora=True)


def _adapted(model: nn.Module, targets: str, adapter_dtype: str, **options: Any) -> nn.Module:
    peft = importlib.import_module("peft")
    casts = chosen("lora", "adapter_dtype", adapter_dtype, {"fp32": True, "model": False})
    names: Any = targets.split(":")
    if targets == "auto":
        kind = getattr(getattr(model, "config", None), "model_type", None)
        names = importlib.import_module("peft.utils").TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.get(kind) or linear_layers(model)
    peft.get_peft_model(model, peft.LoraConfig(target_modules=names, **options), autocast_adapter_dtype=casts)
    return model


@strategy("qlora", needs=("bitsandbytes", "bitsandbytes", "0.43"))
def qlora(model: nn.Module, double_quant: bool = True) -> nn.Module:
    """Keeps the weights of linear layers in 4 bits (NF4). https://huggingface.co/docs/bitsandbytes/reference/nn/linear4bit

    The whole model is on its device before, so that a peak contains it.
    """
    layers = importlib.import_module("bitsandbytes").nn
    for name in linear_layers(model):
        layer = model.get_submodule(name)
        assert isinstance(layer, nn.Linear)
        device, dtype = layer.weight.device, layer.weight.dtype
        with torch.device("meta"):
            quantised = layers.Linear4bit(layer.in_features, layer.out_features, layer.bias is not None, dtype)
        quantised.weight = layers.Params4bit(layer.weight.data, requires_grad=False, compress_statistics=double_quant, quant_type="nf4", module=quantised)
        quantised.bias = layer.bias
        above, _, last = name.rpartition(".")
        setattr(model.get_submodule(above), last, quantised.to(device))
    return model
