"""A small training for versions.py: a ViT of 12 layers under bf16 autocast with AdamW, three steps of 8 images. Prints what PyTorch itself
counted, and a size that depends on values."""

import json

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):  # (B, T, C)
        b, t, c = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.mlp_norm(x))


class Vit(nn.Module):
    def __init__(self, width=768, heads=12, layers=12, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.places = nn.Parameter(torch.zeros(1, 196, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.head = nn.Linear(width, classes)

    def forward(self, images):  # (B, 3, 224, 224)
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.head(self.blocks(x).mean(1))


model = Vit().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    images, labels = torch.randn(8, 3, 224, 224, device="cuda"), torch.randint(1000, (8,), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
card = torch.cuda.get_device_properties(0)
said = {
    "torch": torch.__version__,
    "cuda": torch.version.cuda,
    "reserved": torch.cuda.max_memory_reserved(),
    "allocated": torch.cuda.max_memory_allocated(),
    "rows": len(torch.tensor([1, 0, 2, 0, 3]).cuda().nonzero()),
    "card": [card.name, card.multi_processor_count, card.major, card.minor],
    "cudnn": torch.backends.cudnn.version(),
}
print(json.dumps(said))
