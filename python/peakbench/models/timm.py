"""``timm:NAME``: image classifiers of timm (https://huggingface.co/docs/timm), with cross entropy against random classes."""

import importlib
from typing import Any, Dict, Optional

import torch

from peakbench import models
from peakbench._objects import Unsupported, Value
from peakbench.models import Made, Model

# Not by name, as it has no types.
timm: Any = importlib.import_module("timm")


def names() -> Dict[str, Optional[int]]:
    """All that timm can make; it does not say how many parameters each has."""
    return dict.fromkeys(timm.list_models())


def model(name: str) -> Model:
    """Refused where timm has no such model."""
    if not timm.is_model(name):
        raise models.unknown("timm", name, timm.list_models())
    known = timm.get_pretrained_cfg(name)
    image = known.input_size[-1] if known else 224
    defaults: Dict[str, Value] = {"dtype": "fp32", "image": image, "classes": (known.num_classes if known else 0) or 1000}

    def check(**options: Any) -> None:
        pass

    def make(**options: Any) -> Made:
        # Transformers are made for a size of image, and take no other; convolutions take any, and no such argument.
        size = {"img_size": options["image"]} if options["image"] != image else {}
        with models.default_dtype(torch, options["dtype"]) as dtype:
            try:
                net = timm.create_model(name, pretrained=False, num_classes=options["classes"], **size)
            except TypeError as error:
                if not size or "img_size" not in str(error):
                    raise
                net = timm.create_model(name, pretrained=False, num_classes=options["classes"])
        batch = {
            "images": torch.randn(options["batch"], 3, options["image"], options["image"], dtype=dtype),
            "classes": torch.randint(options["classes"], (options["batch"],)),
        }
        return net, models.loss_of(batch, lambda rows: _loss(net(rows["images"]), rows["classes"]))

    return Model(defaults, check, make)


def _loss(output: Any, classes: torch.Tensor) -> torch.Tensor:
    if not isinstance(output, torch.Tensor):
        raise Unsupported(f"it returned a {type(output).__name__}, and no scores of classes")
    return torch.nn.functional.cross_entropy(output, classes)
