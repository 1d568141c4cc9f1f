"""``diffusers:NAME``: denoising models of diffusers (https://huggingface.co/docs/diffusers), with the mean squared error against noise.

The error is taken in fp32, as in diffusers' own training scripts (examples/text_to_image/train_text_to_image.py). Text encoders and the
autoencoder are not part of it: their outputs are the batch.
"""

import importlib
from typing import Any, Callable, Dict, Tuple

import torch

from peakbench import models
from peakbench._objects import Unsupported, Value
from peakbench.models import Made, Model

# Not by name, as it has no types.
diffusers: Any = importlib.import_module("diffusers")

_CACHED = ("unet/config.json", "transformer/config.json", "config.json")
_LATENT = 8  # pixels of an image for each of the autoencoder's latents

Batch = Dict[str, Any]


def _for_unet(config: Any, options: Dict[str, Any]) -> Batch:
    batch, side = options["batch"], options["image"] // _LATENT
    inputs: Batch = {
        "sample": torch.randn(batch, config.in_channels, side, side),
        "timestep": torch.randint(1000, (batch,)),
        "encoder_hidden_states": torch.randn(batch, options["seq"], _first(config.cross_attention_dim)),
    }
    if config.addition_embed_type == "text_time":
        times = 6  # original size, crop and target size: two numbers each
        pooled = config.projection_class_embeddings_input_dim - times * config.addition_time_embed_dim
        inputs["added_cond_kwargs"] = {"text_embeds": torch.randn(batch, pooled), "time_ids": torch.rand(batch, times)}
    return inputs


def _for_plain_unet(config: Any, options: Dict[str, Any]) -> Batch:
    batch, side = options["batch"], options["image"]
    return {"sample": torch.randn(batch, config.in_channels, side, side), "timestep": torch.randint(1000, (batch,))}


def _for_sd3(config: Any, options: Dict[str, Any]) -> Batch:
    batch, side = options["batch"], options["image"] // _LATENT
    return {
        "hidden_states": torch.randn(batch, config.in_channels, side, side),
        "timestep": torch.randint(1000, (batch,)),
        "encoder_hidden_states": torch.randn(batch, options["seq"], config.joint_attention_dim),
        "pooled_projections": torch.randn(batch, config.pooled_projection_dim),
    }


def _for_flux(config: Any, options: Dict[str, Any]) -> Batch:
    """Four latents are a token."""
    batch, side = options["batch"], options["image"] // (2 * _LATENT)
    inputs: Batch = {
        "hidden_states": torch.randn(batch, side * side, config.in_channels),
        "timestep": torch.rand(batch),
        "encoder_hidden_states": torch.randn(batch, options["seq"], config.joint_attention_dim),
        "pooled_projections": torch.randn(batch, config.pooled_projection_dim),
        # The same for each sample, whose number they do not depend on.
        "positions": _Shared({"img_ids": torch.zeros(side * side, 3), "txt_ids": torch.zeros(options["seq"], 3)}),
    }
    if config.guidance_embeds:
        inputs["guidance"] = torch.ones(batch)
    return inputs


class _Shared:
    """What all samples of a batch have in common."""

    def __init__(self, values: Batch) -> None:
        self.values = values


# The class of a model: its batch, the length of its text by default, and the number of pixels for each of its sample_size.
_KINDS: Dict[str, Tuple[Callable[[Any, Dict[str, Any]], Batch], int, int]] = {
    "UNet2DConditionModel": (_for_unet, 77, _LATENT),
    "UNet2DModel": (_for_plain_unet, 0, 1),
    "SD3Transformer2DModel": (_for_sd3, 333, _LATENT),  # 77 of CLIP and 256 of T5
    "FluxTransformer2DModel": (_for_flux, 512, _LATENT),
}
_DEFAULT_SIDE = 128  # of the latents, where the configuration has no sample_size
_LAYERS = ("num_layers", "num_single_layers")


def model(name: str) -> Model:
    """The model of a bundled name, a config.json, or a name in the hub's cache. Refused where diffusers has no such model."""
    values = models.configuration("diffusers", name, _CACHED)
    kind = values.get("_class_name")
    if not isinstance(kind, str):
        raise Unsupported(f"diffusers: {name} is no configuration of a model of diffusers: it has no _class_name")
    if not hasattr(diffusers, kind):
        newer = "a newer release may (pip install -U diffusers)"
        raise Unsupported(f"diffusers: {name}: diffusers {diffusers.__version__} has no class {kind}; {newer}")
    if kind not in _KINDS:
        raise Unsupported(f"diffusers: {name}: no batch is known for {kind}; known are {', '.join(_KINDS)}")
    batch_of, seq, pixels = _KINDS[kind]
    step = 2 * pixels if pixels > 1 else 1
    depths = [one for one in _LAYERS if one in values] or ["layers_per_block"]
    depth = max(int(_first(values.get(one, 2))) for one in depths)
    defaults: Dict[str, Value] = {"dtype": "fp32", "image": _first(values.get("sample_size") or _DEFAULT_SIDE) * pixels, "layers": depth}
    if seq:
        defaults["seq"] = seq

    def check(**options: Any) -> None:
        if options["image"] % step:
            raise Unsupported(f"image={options['image']}: expected a multiple of {step} pixels")
        if options["layers"] > depth:
            raise Unsupported(f"layers={options['layers']}: the model has {depth}")

    def make(**options: Any) -> Made:
        fewer = {one: min(int(_first(values.get(one, 2))), options["layers"]) for one in depths} if options["layers"] < depth else {}
        with models.default_dtype(torch, options["dtype"]):
            net = getattr(diffusers, kind).from_config({**values, **fewer}).train()
            batch = batch_of(net.config, options)
            noise = torch.randn(_shape_of_output(net, batch))
        return net, models.loss_of({"inputs": batch, "noise": noise}, lambda rows: _loss(net, rows))

    return Model(defaults, check, make)


def _shape_of_output(net: Any, batch: Batch) -> Tuple[int, ...]:
    inputs = batch["sample"] if "sample" in batch else batch["hidden_states"]
    channels = getattr(net.config, "out_channels", None) or net.config.in_channels
    return (*inputs.shape[:2], channels) if inputs.dim() == 3 else (inputs.shape[0], channels, *inputs.shape[2:])


def _loss(net: Any, rows: Batch) -> torch.Tensor:
    inputs = dict(rows["inputs"])
    shared = inputs.pop("positions", _Shared({})).values
    return torch.nn.functional.mse_loss(net(**inputs, **shared).sample.float(), rows["noise"].float())


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) else value
