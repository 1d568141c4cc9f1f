"""What ``hf:NAME`` needs transformers for: configurations, batches, models.

The class is the one that the configuration names in ``architectures``, made by the ``from_config`` of its Auto class. ``use_cache`` is off,
as transformers' Trainer has it by default.
"""

import copy
import importlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, Tuple

import torch

from peakbench import models
from peakbench._objects import Unsupported
from peakbench.models import Made, hf

# Not by name, as it has no types.
transformers: Any = importlib.import_module("transformers")

Batch = Dict[str, torch.Tensor]


@dataclass(frozen=True)
class _Sizes:
    """What a batch is made for."""

    batch: int
    seq: int
    image: int
    dtype: torch.dtype


def _tokens(config: Any, sizes: _Sizes) -> torch.Tensor:
    """Random token ids (batch, seq)."""
    return torch.randint(config.get_text_config().vocab_size, (sizes.batch, sizes.seq))


def _images(config: Any, sizes: _Sizes) -> torch.Tensor:
    """Random images (batch, channels, image, image)."""
    vision = getattr(config, "vision_config", None) or config
    return torch.randn(sizes.batch, getattr(vision, "num_channels", 3), sizes.image, sizes.image, dtype=sizes.dtype)


def _language(config: Any, sizes: _Sizes) -> Batch:
    tokens = _tokens(config, sizes)
    return {"input_ids": tokens, "labels": tokens.clone()}


def _classified_text(config: Any, sizes: _Sizes) -> Batch:
    return {"input_ids": _tokens(config, sizes), "labels": torch.randint(config.num_labels, (sizes.batch,))}


def _classified_images(config: Any, sizes: _Sizes) -> Batch:
    return {"pixel_values": _images(config, sizes), "labels": torch.randint(config.num_labels, (sizes.batch,))}


def _pairs(config: Any, sizes: _Sizes) -> Batch:
    return {"pixel_values": _images(config, sizes), "input_ids": _tokens(config, sizes)}


def _speech(config: Any, sizes: _Sizes) -> Batch:
    # Two frames of the spectrogram are one position of the encoder.
    sound = torch.randn(sizes.batch, config.num_mel_bins, 2 * config.max_source_positions, dtype=sizes.dtype)
    return {"input_features": sound, "labels": _tokens(config, sizes)}


# What transformers calls the table of a form's classes, and the batch.
# A configuration that names no class is of the first form that has one.
_FORMS: Dict[str, Tuple[str, Callable[[Any, _Sizes], Batch]]] = {
    "SpeechSeq2Seq": ("SPEECH_SEQ_2_SEQ", _speech),
    "Seq2SeqLM": ("SEQ_TO_SEQ_CAUSAL_LM", _language),
    "MaskedLM": ("MASKED_LM", _language),
    "CausalLM": ("CAUSAL_LM", _language),
    "ZeroShotImageClassification": ("ZERO_SHOT_IMAGE_CLASSIFICATION", _pairs),
    "ImageClassification": ("IMAGE_CLASSIFICATION", _classified_images),
    "SequenceClassification": ("SEQUENCE_CLASSIFICATION", _classified_text),
}


def made(name: str, form: str, values: hf.Values, options: Dict[str, Any]) -> Made:
    """The model of these values, and its loss."""
    config = _resized(values, configured(name, values), options)
    dtype = getattr(torch, models.DTYPES[options["dtype"]])
    if hasattr(config, "use_cache"):
        config.use_cache = False
    attention = {} if options["attn"] == "auto" else {"attn_implementation": options["attn"]}
    auto = getattr(transformers, f"AutoModelFor{form}" if form else "AutoModel")
    net = auto.from_config(config, dtype=dtype, **attention).train()
    sizes = _Sizes(options["batch"], options.get("seq", 0), options.get("image", 0), dtype)
    if not form:
        inputs = {"pixel_values": _images(config, sizes)} if hf.sees(config.to_dict()) else {"input_ids": _tokens(config, sizes)}
        return net, models.loss_of({**inputs, "wanted": torch.randn(sizes.batch, config.hidden_size, dtype=dtype)}, _of_features(net))
    batch: Dict[str, Any] = dict(_FORMS[form][1](config, sizes))
    if form == "ZeroShotImageClassification":
        batch["return_loss"] = True
    return net, models.loss_of(batch, lambda inputs: net(**inputs).loss)


def _of_features(net: Any) -> Callable[[Batch], torch.Tensor]:
    """The mean squared error of the pooled output (batch, hidden size) against random features, as in distillation."""
    return lambda inputs: torch.nn.functional.mse_loss(net(inputs[net.main_input_name]).pooler_output, inputs["wanted"])


# ---- configurations ----


def configured(name: str, values: hf.Values) -> Any:
    """The configuration of transformers. Refused where it has no such model."""
    kind = values.get("model_type")
    if not isinstance(kind, str):
        raise Unsupported(f"hf: {name} is no configuration of transformers: it has no model_type")
    if kind not in transformers.CONFIG_MAPPING:
        raise Unsupported(f'hf: {name}: transformers {transformers.__version__} has no model of the type "{kind}"; {_NEWER}')
    try:
        own = {key: value for key, value in values.items() if key != "quantization_config"}  # that is of weights that are loaded
        return transformers.CONFIG_MAPPING[kind].from_dict(copy.deepcopy(own))
    except Exception as error:
        said = " ".join(str(error).split())
        raise Unsupported(f"hf: {name}: transformers cannot use this configuration: {type(error).__name__}: {said}") from None


_NEWER = "a newer release may (pip install -U transformers)"


def form_of(name: str, config: Any) -> str:
    """The form of the class that the configuration names; empty where the class computes no loss."""
    wanted = (config.architectures or [""])[0]
    if wanted and wanted not in dir(transformers):
        raise Unsupported(f"hf: {name}: transformers {transformers.__version__} has no class {wanted}; {_NEWER}")
    for form in _FORMS:
        known = _classes(_FORMS[form][0], config)
        if wanted in known or (known and not wanted):
            return form
    # Of a model of text and images, the part of the text.
    if "text_config" in config.sub_configs and _classes("CAUSAL_LM", config):
        return "CausalLM"
    if not wanted or wanted in _classes("", config):
        return ""
    raise Unsupported(f"hf: {name}: no batch is known for {wanted}; known are {', '.join(f'AutoModelFor{form}' for form in _FORMS)}")


def _classes(table: str, config: Any) -> Tuple[str, ...]:
    """The names of the classes that transformers has for it in that table ("": without a loss)."""
    auto = transformers.models.auto.modeling_auto
    mapping = getattr(auto, f"MODEL_FOR_{table}_MAPPING_NAMES" if table else "MODEL_MAPPING_NAMES")
    known = mapping.get(config.model_type, ())
    return (known,) if isinstance(known, str) else tuple(known)


def has_no_loss(name: str, values: hf.Values) -> str:
    """The sentence that says so."""
    config = configured(name, values)
    own = (config.architectures or _classes("", config) or [config.model_type])[0]
    others = [one for form in _FORMS for one in _classes(_FORMS[form][0], config)]
    instead = f'name {others[0]} in its "architectures", or ' if others else ""
    return f"{own} computes no loss: {instead}give loss=features (mean squared error of the pooled output against random features)"


def _resized(values: hf.Values, config: Any, options: Dict[str, Any]) -> Any:
    """With that many layers, and images of that size. What transformers derives from them is derived anew."""
    full, values = config.to_dict(), copy.deepcopy(values)
    if options.get("layers", 0) < max(hf.depths(full), default=0):
        _keep_layers(values, full, options["layers"])
    if "image" in options and options["image"] != hf.image_of(full):
        part = "vision_config" if "vision_config" in full else ""
        if "image_size" in (full[part] if part else full):
            (values.setdefault(part, {}) if part else values)["image_size"] = options["image"]
    return configured("", values)


def _keep_layers(values: hf.Values, full: hf.Values, layers: int) -> None:
    """The first of them, in the model and in each part; what is listed for each layer, too."""
    own = hf.own_depths(full)
    for name, value in list(values.items()):
        if isinstance(value, list) and len(value) in own.values():
            values[name] = value[:layers]
    values.update({name: min(depth, layers) for name, depth in own.items()})
    for name, part in full.items():
        if isinstance(part, dict) and hf.depths(part):
            _keep_layers(values.setdefault(name, {}), part, layers)
