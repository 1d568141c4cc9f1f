"""``hf:NAME``: models of Hugging Face's transformers (https://huggingface.co/docs/transformers).

What is asked of a bundled name before a case runs is answered without importing PyTorch and transformers, which takes seconds.
"""

import importlib
from typing import Any, Dict, List, Optional, Tuple

from peakbench import models
from peakbench._objects import Unsupported, Value
from peakbench.models import Made, Model

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "num_decoder_layers")
_POSITIONS = ("max_position_embeddings", "n_positions", "max_target_positions")
_USUAL_SEQ = 256  # that of Peakbench's own decoders
# The options seq and image of a form, which is the name of an Auto class after AutoModelFor. A model without a loss has no form.
_TAKES: Dict[str, Tuple[str, ...]] = {
    "SpeechSeq2Seq": ("seq",),
    "Seq2SeqLM": ("seq",),
    "MaskedLM": ("seq",),
    "CausalLM": ("seq",),
    "ZeroShotImageClassification": ("seq", "image"),
    "ImageClassification": ("image",),
    "SequenceClassification": ("seq",),
}

Values = Dict[str, Any]  # of a configuration


def model(name: str) -> Model:
    """The model of a bundled name, a config.json, or a name in the hub's cache. Refused where transformers has no such model."""
    values = models.configuration("hf", name, ("config.json",))
    own = models.bundled("hf").get(name)
    config = None if own else _with_library().configured(name, values)
    full: Values = values if config is None else config.to_dict()
    form: str = own["form"] if own else _with_library().form_of(name, config)
    positions, depth = _positions(full), max(depths(full), default=0)
    takes = _TAKES[form] if form else ("image",) if sees(full) else ("seq",)
    defaults: Dict[str, Value] = {"dtype": "fp32", "attn": "auto"}
    if "seq" in takes:
        defaults["seq"] = min(_USUAL_SEQ, positions or _USUAL_SEQ)
    if "image" in takes:
        defaults["image"] = image_of(full)
    if depth:
        defaults["layers"] = depth
    if not form:
        defaults["loss"] = "features" if own else ""

    def check(**options: Any) -> None:
        models.one_of("attn", options["attn"], ("auto", "sdpa", "eager"))
        if positions and options.get("seq", 1) > positions:
            raise Unsupported(f"seq={options['seq']} is too long: the model has {positions:,} positions")
        if options.get("layers", depth) > depth:
            raise Unsupported(f"layers={options['layers']}: the model has {depth}")
        if not form and options["loss"] != "features":
            raise Unsupported(_with_library().has_no_loss(name, values))

    def make(**options: Any) -> Made:
        made: Made = _with_library().made(name, form, values, options)
        return made

    return Model(defaults, check, make)


def _with_library() -> Any:
    return importlib.import_module("peakbench.models._transformers")


# ---- what a configuration says ----


def sees(values: Values) -> bool:
    """Whether the model takes images."""
    return "image_size" in values or "num_channels" in values


def image_of(values: Values) -> int:
    """The side of the images in pixels."""
    size = (values.get("vision_config") or values).get("image_size") or 224
    return int(size if isinstance(size, int) else size[0])


def _positions(values: Values) -> Optional[int]:
    """The longest sequence; None where positions are relative or unknown."""
    text = values.get("text_config") or values
    if "relative_attention_num_buckets" in text:
        return None
    return next((int(text[name]) for name in _POSITIONS if isinstance(text.get(name), int)), None)


def own_depths(values: Values) -> Dict[str, int]:
    """The numbers of layers of the model, but for those of its parts."""
    return {name: values[name] for name in _LAYERS if isinstance(values.get(name), int)}


def depths(values: Values) -> List[int]:
    """The numbers of layers of the model and of its parts."""
    return [*own_depths(values).values(), *(depth for part in values.values() if isinstance(part, dict) for depth in depths(part))]
