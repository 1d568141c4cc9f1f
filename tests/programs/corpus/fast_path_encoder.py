"""nn.TransformerEncoder in evaluation with padding: the fast path makes a nested tensor, whose size is the mask's.

Expected: ends well, exact
"""

import torch

layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 2).cuda().eval()
lengths = torch.tensor([20, 13, 7, 2])
padding = torch.arange(20)[None] >= lengths[:, None]
with torch.inference_mode():
    out = model(torch.randn(4, 20, 64).cuda(), src_key_padding_mask=padding.cuda())
assert out.shape == (4, 20, 64), out.shape
