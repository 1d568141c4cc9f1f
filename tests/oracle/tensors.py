"""Weights, inputs and results as safetensors, under names that do not depend on a strategy."""

import torch


def plain_name(name, wrapped_in="base_model.model."):
    """The model's own name for a parameter of a model that peft has wrapped: adapters are NAME.lora_A.weight."""
    return name.removeprefix(wrapped_in).replace(".base_layer.", ".").replace(".default.", ".")


def prefix_of(model):
    """Of names in a model that peft has wrapped: once where it learns prompts, twice where it has changed layers."""
    config = getattr(model, "active_peft_config", None)
    return "base_model." if config is not None and config.is_prompt_learning else "base_model.model."


def named(model):
    return {plain_name(name, prefix_of(model)): parameter for name, parameter in model.named_parameters()}


def buffers(model):
    """Those that are part of the model's state: quantised weights."""
    state = model.state_dict()
    return {plain_name(name, prefix_of(model)): buffer for name, buffer in model.named_buffers() if name in state}


def copy_of(tensors):
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}


@torch.no_grad()
def load_into(model, path):
    from safetensors.torch import load_file

    mine, given = named(model) | buffers(model), load_file(path)
    missing, extra = sorted(mine.keys() - given.keys()), sorted(given.keys() - mine.keys())
    # Adapters may start from peft's own initialisation.
    missing = [name for name in missing if ".lora_" not in name]
    if missing or extra:
        raise SystemExit(f"{path}: missing {missing[:5]}, extra {extra[:5]}")
    for name, tensor in given.items():
        mine[name].copy_(tensor)


@torch.no_grad()
def randomise(model, seed):
    """Every parameter different from zero, so that no gradient is zero by construction: normal with deviation 0.05, around one
    for the scales of normalisations. (torchvision starts its head, peft its second adapter matrix, at zero.)"""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in sorted(named(model).items()):
        values = torch.randn(parameter.shape, generator=generator) * 0.05
        is_scale = parameter.dim() == 1 and name.endswith("weight")
        parameter.copy_(values + 1 if is_scale else values)


def save(path, tensors):
    from safetensors.torch import save_file

    save_file(copy_of(tensors), path)
