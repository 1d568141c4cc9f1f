"""Stock torchvision ResNet, one training step after another: loss = sum of the outputs, Adam.

  resnet.py --model resnet-50 --channels_last true --strategy fused-in-backward
  resnet.py --tiny --randomise --save-weights w.safetensors --save r.safetensors
"""

import torch
import torchvision
from torchvision.models.resnet import Bottleneck

import training

MODELS = {"resnet-50": dict(layers=[3, 4, 6, 3], width_per_group=64)}
TINY = dict(layers=[1, 1, 1, 1], width_per_group=8)
FORMATS = {"false": torch.contiguous_format, "true": torch.channels_last}


class ResNet(training.Subject):
    optimizer_class = torch.optim.Adam
    optimizer_options = {"lr": 1e-3}
    loss_is_a_sum = True

    def __init__(self, args, config):
        self.args, self.config = args, config

    def build(self):
        with self.defaults():
            model = torchvision.models.ResNet(Bottleneck, **self.config)
        return model.to(memory_format=FORMATS[self.args.channels_last])

    def batch(self):
        size, dtype = self.args.image, training.DTYPES[self.args.dtype]
        images = torch.randn(self.args.batch, 3, size, size, dtype=dtype, device=self.args.device)
        return {"x": images.contiguous(memory_format=FORMATS[self.args.channels_last])}

    def blocks(self, model):
        return []

    def forward(self, model, batch):
        output = model(batch["x"])
        return output, output.sum()


def main():
    parser = training.arguments(__doc__)
    parser.add_argument("--model", default="resnet-50", choices=MODELS)
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--blocks", help="bottlenecks of each stage: 3:4:6:3")
    parser.add_argument("--channels_last", default="false", choices=FORMATS)
    parser.add_argument("--tiny", action="store_true", help=f"instead of the model's own sizes: {TINY}")
    args, config = training.parse(parser, {"width": "width_per_group"})
    config = (TINY if args.tiny else MODELS[args.model]) | config
    if args.blocks:
        config["layers"] = [int(blocks) for blocks in args.blocks.split(":")]
    training.main(ResNet(args, config), args, model=args.model, image_size=args.image, config=config)


if __name__ == "__main__":
    main()
