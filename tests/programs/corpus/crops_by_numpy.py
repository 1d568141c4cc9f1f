"""Scores that leave for NumPy on the host, where boxes are chosen by them; crops of the chosen ones go back to the card.

Expected: ends well, exact if (what NumPy does with the scores is not seen)
Truth: none; a card may choose other boxes, and the condition says so
"""

import numpy as np
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(16, 5, 3, 2, 1)).cuda()
images = torch.rand(2, 3, 256, 256).cuda()
with torch.no_grad(), torch.backends.cudnn.flags(enabled=False):
    out = model(images)
scores = out[:, 0].sigmoid().cpu().numpy()
image, rows, columns = np.where(scores > np.quantile(scores, 0.995))
crops = [images[i, :, max(4 * y - 8, 0) : 4 * y + 8, max(4 * x - 8, 0) : 4 * x + 8] for i, y, x in zip(image, rows, columns)]
batch = torch.stack([torch.nn.functional.interpolate(crop[None], (32, 32))[0] for crop in crops])
print(batch.shape[1:])
