"""Stock torchvision ViT, one training step after another: loss = sum of the outputs, Adam.

  vit.py --model vit-l-16 --strategy fused-in-backward
  vit.py --tiny --strategy lora+checkpointing --randomise --save-weights w.safetensors --save r.safetensors
"""

import torch
import torchvision

import training

MODELS = {
    "vit-h-14": dict(image_size=224, patch_size=14, num_layers=32, num_heads=16, hidden_dim=1280, mlp_dim=5120),
    "vit-l-16": dict(image_size=224, patch_size=16, num_layers=24, num_heads=16, hidden_dim=1024, mlp_dim=4096),
    "vit-b-16": dict(image_size=224, patch_size=16, num_layers=12, num_heads=12, hidden_dim=768, mlp_dim=3072),
}
TINY = dict(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32, num_classes=10)
OVERRIDES = {
    "layers": "num_layers",
    "width": "hidden_dim",
    "heads": "num_heads",
    "mlp-width": "mlp_dim",
    "image-size": "image_size",
    "patch-size": "patch_size",
    "classes": "num_classes",
}


class Vit(training.Subject):
    optimizer_class = torch.optim.Adam
    optimizer_options = {"lr": 1e-3}
    loss_is_a_sum = True
    lora_targets = {"auto": "mlp", "mlp": [r"mlp\.0", r"mlp\.3"], "output": [r"heads\.head"]}

    def __init__(self, args, config):
        self.args, self.config = args, config

    def build(self):
        with self.defaults():
            return torchvision.models.VisionTransformer(**self.config)

    def batch(self):
        size = self.config["image_size"]
        dtype = training.DTYPES[self.args.dtype]
        return {"x": torch.randn(self.args.batch, 3, size, size, dtype=dtype, device=self.args.device)}

    def blocks(self, model):
        return list(model.encoder.layers)

    def forward(self, model, batch):
        output = model(batch["x"])
        return output, output.sum()


def main():
    parser = training.arguments(__doc__)
    parser.add_argument("--model", default="vit-l-16", choices=MODELS)
    parser.add_argument("--tiny", action="store_true", help=f"instead of the model's own sizes: {TINY}")
    args, config = training.parse(parser, OVERRIDES)
    config = (TINY if args.tiny else MODELS[args.model]) | config
    training.main(Vit(args, config), args, model=args.model, config=config)


if __name__ == "__main__":
    main()
