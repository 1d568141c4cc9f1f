"""``torchvision:NAME``: models of torchvision, with the losses of its training scripts.

https://docs.pytorch.org/vision/stable/models.html

Classifiers of images and videos: cross entropy, with that of the auxiliary classifiers where a model has them. Segmentation: cross entropy
of each pixel. Detection: the sum of the losses that the model returns.
"""

import importlib
from typing import Any, Callable, Dict, Optional

import torch

from peakbench import models
from peakbench._objects import Unsupported, Value
from peakbench.models import Made, Model

# Not by name, as it has no types.
torchvision: Any = importlib.import_module("torchvision")

_OBJECTS = 4  # in an image, of which each has a box, a mask and key points

Tensors = Dict[str, Any]


def names() -> Dict[str, Optional[int]]:
    """Those that can be trained, with the number of parameters that torchvision publishes."""
    found = {}
    for name in torchvision.models.list_models():
        if _kind(name):
            weights = next(iter(torchvision.models.get_model_weights(name)), None)
            found[name] = weights.meta["num_params"] if weights else None
    return found


def _kind(name: str) -> str:
    """classification, segmentation, detection or video; empty for what has no loss here: quantized models and optical flow."""
    module = torchvision.models.get_model_builder(name).__module__
    for kind in ("quantization", "optical_flow"):
        if f".{kind}." in module:
            return ""
    return next((kind for kind in ("segmentation", "detection", "video") if f".{kind}." in module), "classification")


def model(name: str) -> Model:
    """Refused where torchvision has no such model, or none that can be trained here."""
    if name not in torchvision.models.list_models():
        raise models.unknown("torchvision", name, torchvision.models.list_models())
    kind = _kind(name)
    if not kind:
        raise Unsupported(f"torchvision: {name} has no loss: it is quantized, or finds optical flow")
    weights = next(iter(torchvision.models.get_model_weights(name)), None)
    defaults: Dict[str, Value] = {
        "dtype": "fp32",
        "image": _image(weights, kind),
        "classes": len(weights.meta.get("categories", ())) if weights else 1000,
    }
    if kind == "video":
        defaults["frames"] = 16

    def check(**options: Any) -> None:
        pass

    def make(**options: Any) -> Made:
        with models.default_dtype(torch, options["dtype"]):
            net = _created(name, kind, options).train()
            return net, models.loss_of(_BATCHES.get(kind, _classified)(options), _LOSSES[kind](net))

    return Model(defaults, check, make)


def _image(weights: Any, kind: str) -> int:
    """The side of the images that the published weights were evaluated with; 800 for detection, as in torchvision's own training."""
    if kind == "detection" or weights is None:
        return 800 if kind == "detection" else 224
    made = weights.transforms()
    sizes = getattr(made, "crop_size", None) or made.resize_size
    return int(sizes[0])


def _created(name: str, kind: str, options: Tensors) -> Any:
    more = {"num_classes": options["classes"]}
    if kind in ("detection", "segmentation"):
        more["weights_backbone"] = None
    if torchvision.models.get_model_builder(name).__module__.endswith(".vision_transformer"):
        more["image_size"] = options["image"]
    return torchvision.models.get_model(name, weights=None, **more)


# ---- batches: dtype is the default while they are made ----


def _classified(options: Tensors) -> Tensors:
    images = torch.randn(options["batch"], 3, options["image"], options["image"])
    return {"images": images, "classes": torch.randint(options["classes"], (options["batch"],))}


def _videos(options: Tensors) -> Tensors:
    videos = torch.randn(options["batch"], 3, options["frames"], options["image"], options["image"])
    return {"images": videos, "classes": torch.randint(options["classes"], (options["batch"],))}


def _segmented(options: Tensors) -> Tensors:
    batch, image = options["batch"], options["image"]
    return {"images": torch.randn(batch, 3, image, image), "classes": torch.randint(options["classes"], (batch, image, image))}


def _detected(options: Tensors) -> Tensors:
    """Images, and in each some objects with a box, a mask and key points: what a model does not use, it ignores."""
    image = options["image"]
    return {
        "images": [torch.rand(3, image, image) for _ in range(options["batch"])],
        "targets": [_target(image, options["classes"]) for _ in range(options["batch"])],
    }


def _target(image: int, classes: int) -> Tensors:
    corners = torch.rand(_OBJECTS, 2) * (image / 2)
    return {
        "boxes": torch.cat([corners, corners + image / 4], dim=1),
        "labels": torch.randint(1, max(classes, 2), (_OBJECTS,)),
        "masks": torch.randint(2, (_OBJECTS, image, image), dtype=torch.uint8),
        "keypoints": torch.cat([corners[:, None, :].expand(-1, 17, -1), torch.ones(_OBJECTS, 17, 1)], dim=2),
    }


# ---- losses ----


def _of_classes(net: Any) -> Callable[[Tensors], Any]:
    """Auxiliary classifiers count 0.4 for Inception v3 (PyTorch's tutorial on finetuning) and 0.3 for GoogLeNet (its paper)."""

    def loss(batch: Tensors) -> torch.Tensor:
        output = net(batch["images"])
        if isinstance(output, torch.Tensor):
            return _cross_entropy(output, batch)
        share = 0.4 if len(output) == 2 else 0.3
        first, *others = [_cross_entropy(one, batch) for one in output if one is not None]
        return first + share * sum(others)

    return loss


def _of_pixels(net: Any) -> Callable[[Tensors], Any]:
    """As torchvision's references/segmentation/train.py has it: the auxiliary classifier counts half."""

    def loss(batch: Tensors) -> torch.Tensor:
        output = net(batch["images"])
        whole = _cross_entropy(output["out"], batch)
        return whole + 0.5 * _cross_entropy(output["aux"], batch) if "aux" in output else whole

    return loss


def _of_objects(net: Any) -> Callable[[Tensors], Any]:
    return lambda batch: sum(net(batch["images"], batch["targets"]).values())


def _cross_entropy(output: torch.Tensor, batch: Tensors) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(output, batch["classes"])


_BATCHES = {"video": _videos, "segmentation": _segmented, "detection": _detected}
_LOSSES = {"classification": _of_classes, "video": _of_classes, "segmentation": _of_pixels, "detection": _of_objects}
