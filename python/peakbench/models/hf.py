"""``hf:NAME``: models of Hugging Face's transformers (https://huggingface.co/docs/transformers).

The class is the one that the configuration names in ``architectures``, made by the ``from_config`` of its Auto class. ``use_cache`` is off,
as transformers' Trainer has it by default.
"""

import copy
import importlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from peakbench import models
from peakbench._objects import Refused, Value
from peakbench.models import Made, Model

# Not by name, as it has no types.
transformers: Any = importlib.import_module("transformers")

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "num_decoder_layers")
_POSITIONS = ("max_position_embeddings", "n_positions", "max_target_positions")
_USUAL_SEQ = 256  # that of Peakbench's own decoders

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


# The Auto class of a form; what transformers calls the table of its classes; its batch; which of the options seq and image it has.
_FORMS: Dict[str, Tuple[str, Callable[[Any, _Sizes], Batch], Tuple[str, ...]]] = {
    # A configuration that names no class is of the first that transformers has for it.
    "SpeechSeq2Seq": ("SPEECH_SEQ_2_SEQ", _speech, ("seq",)),
    "Seq2SeqLM": ("SEQ_TO_SEQ_CAUSAL_LM", _language, ("seq",)),
    "MaskedLM": ("MASKED_LM", _language, ("seq",)),
    "CausalLM": ("CAUSAL_LM", _language, ("seq",)),
    "ZeroShotImageClassification": ("ZERO_SHOT_IMAGE_CLASSIFICATION", _pairs, ("seq", "image")),
    "ImageClassification": ("IMAGE_CLASSIFICATION", _classified_images, ("image",)),
    "SequenceClassification": ("SEQUENCE_CLASSIFICATION", _classified_text, ("seq",)),
}


def model(name: str) -> Model:
    """The model of a bundled name, a config.json, or a name in the hub's cache. Refused where transformers has no such model."""
    values = models.configuration("hf", name, ("config.json",))
    config = _config(name, values)
    form = _form(name, config)
    positions, depth = _positions(config), max(_depths(config.to_dict()), default=0)
    takes = _FORMS[form][2] if form else ("image",) if _sees(config) else ("seq",)
    defaults: Dict[str, Value] = {"dtype": "fp32", "attn": "auto"}
    if "seq" in takes:
        defaults["seq"] = min(_USUAL_SEQ, positions or _USUAL_SEQ)
    if "image" in takes:
        defaults["image"] = _image(config)
    if depth:
        defaults["layers"] = depth
    if not form:
        defaults["loss"] = models.bundled("hf").get(name, {}).get("loss", "")

    def check(**options: Any) -> None:
        models.one_of("attn", options["attn"], ("auto", "sdpa", "eager"))
        if positions and options.get("seq", 1) > positions:
            raise Refused(f"seq={options['seq']} is too long: the model has {positions:,} positions")
        if options.get("layers", depth) > depth:
            raise Refused(f"layers={options['layers']}: the model has {depth}")
        if not form and options["loss"] != "features":
            raise Refused(_has_no_loss(config))

    return Model(defaults, check, lambda **options: _made(form, _resized(values, config, options), options))


def _made(form: str, config: Any, options: Dict[str, Any]) -> Made:
    dtype = getattr(torch, models.DTYPES[options["dtype"]])
    if hasattr(config, "use_cache"):
        config.use_cache = False
    attention = {} if options["attn"] == "auto" else {"attn_implementation": options["attn"]}
    auto = getattr(transformers, f"AutoModelFor{form}" if form else "AutoModel")
    net = auto.from_config(config, dtype=dtype, **attention).train()
    sizes = _Sizes(options["batch"], options.get("seq", 0), options.get("image", 0), dtype)
    if not form:
        inputs = {"pixel_values": _images(config, sizes)} if _sees(config) else {"input_ids": _tokens(config, sizes)}
        return net, models.loss_of({**inputs, "wanted": torch.randn(sizes.batch, config.hidden_size, dtype=dtype)}, _of_features(net))
    batch: Dict[str, Any] = dict(_FORMS[form][1](config, sizes))
    if form == "ZeroShotImageClassification":
        batch["return_loss"] = True
    return net, models.loss_of(batch, lambda inputs: net(**inputs).loss)


def _of_features(net: Any) -> Callable[[Batch], torch.Tensor]:
    """The mean squared error of the pooled output (batch, hidden size) against random features, as in distillation."""
    return lambda inputs: torch.nn.functional.mse_loss(net(inputs[net.main_input_name]).pooler_output, inputs["wanted"])


# ---- what a configuration says ----


def _config(name: str, values: Dict[str, Any]) -> Any:
    kind = values.get("model_type")
    if not isinstance(kind, str):
        raise Refused(f"hf: {name} is no configuration of transformers: it has no model_type")
    if kind not in transformers.CONFIG_MAPPING:
        raise Refused(f'hf: {name}: transformers {transformers.__version__} has no model of the type "{kind}"; {_NEWER}')
    values.pop("quantization_config", None)  # of weights that are loaded
    try:
        return transformers.CONFIG_MAPPING[kind].from_dict(copy.deepcopy(values))
    except Exception as error:
        said = " ".join(str(error).split())
        raise Refused(f"hf: {name}: transformers cannot use this configuration: {type(error).__name__}: {said}") from None


_NEWER = "a newer release may (pip install -U transformers)"


def _form(name: str, config: Any) -> str:
    """The form of the class that the configuration names; empty where the class computes no loss."""
    wanted = (config.architectures or [""])[0]
    if wanted and wanted not in dir(transformers):
        raise Refused(f"hf: {name}: transformers {transformers.__version__} has no class {wanted}; {_NEWER}")
    for form in _FORMS:
        known = _classes(_FORMS[form][0], config)
        if wanted in known or (known and not wanted):
            return form
    # Of a model of text and images, the part of the text.
    if "text_config" in config.sub_configs and _classes("CAUSAL_LM", config):
        return "CausalLM"
    if not wanted or wanted in _classes("", config):
        return ""
    raise Refused(f"hf: {name}: no batch is known for {wanted}; known are {', '.join(f'AutoModelFor{form}' for form in _FORMS)}")


def _classes(table: str, config: Any) -> Tuple[str, ...]:
    """The names of the classes that transformers has for it in that table ("": without a loss)."""
    auto = transformers.models.auto.modeling_auto
    mapping = getattr(auto, f"MODEL_FOR_{table}_MAPPING_NAMES" if table else "MODEL_MAPPING_NAMES")
    known = mapping.get(config.model_type, ())
    return (known,) if isinstance(known, str) else tuple(known)


def _has_no_loss(config: Any) -> str:
    own = (config.architectures or _classes("", config) or [config.model_type])[0]
    others = [one for form in _FORMS for one in _classes(_FORMS[form][0], config)]
    instead = f'name {others[0]} in its "architectures", or ' if others else ""
    return f"{own} computes no loss: {instead}give loss=features (mean squared error of the pooled output against random features)"


def _sees(config: Any) -> bool:
    return hasattr(config, "image_size") or hasattr(config, "num_channels")


def _image(config: Any) -> int:
    """The side of the images in pixels."""
    size = getattr(getattr(config, "vision_config", None) or config, "image_size", None) or 224
    return int(size if isinstance(size, int) else size[0])


def _positions(config: Any) -> Optional[int]:
    """The longest sequence; None where positions are relative or unknown."""
    text = config.get_text_config()
    if hasattr(text, "relative_attention_num_buckets"):
        return None
    return next((int(getattr(text, name)) for name in _POSITIONS if isinstance(getattr(text, name, None), int)), None)


def _depths(values: Dict[str, Any]) -> List[int]:
    """The numbers of layers of the model and of its parts."""
    own = [values[name] for name in _LAYERS if isinstance(values.get(name), int)]
    return own + [depth for part in values.values() if isinstance(part, dict) for depth in _depths(part)]


def _resized(values: Dict[str, Any], config: Any, options: Dict[str, Any]) -> Any:
    """With that many layers, and images of that size. What transformers derives from them is derived anew."""
    full, values = config.to_dict(), copy.deepcopy(values)
    if options.get("layers", 0) < max(_depths(full), default=0):
        _keep_layers(values, full, options["layers"])
    if "image" in options and options["image"] != _image(config):
        part = "vision_config" if "vision_config" in full else ""
        if "image_size" in (full[part] if part else full):
            (values.setdefault(part, {}) if part else values)["image_size"] = options["image"]
    return type(config).from_dict(values)


def _keep_layers(values: Dict[str, Any], full: Dict[str, Any], layers: int) -> None:
    """The first of them, in the model and in each part; what is listed for each layer, too."""
    own = {name: full[name] for name in _LAYERS if isinstance(full.get(name), int)}
    for name, value in list(values.items()):
        if isinstance(value, list) and len(value) in own.values():
            values[name] = value[:layers]
    values.update({name: min(depth, layers) for name, depth in own.items()})
    for name, part in full.items():
        if isinstance(part, dict) and _depths(part):
            _keep_layers(values.setdefault(name, {}), part, layers)
