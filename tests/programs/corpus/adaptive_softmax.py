"""A language model over many words with an adaptive softmax: words from the host fall into clusters, which decide the rows of each product.

Expected: ends well, exact
Truth: the CPU's run (rows of each cluster)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
words = (torch.rand(2048) ** 4 * 20000).long()
softmax = torch.nn.AdaptiveLogSoftmaxWithLoss(64, 20000, [100, 1000, 5000]).to(device)
for tail in softmax.tail:
    tail[0].register_forward_hook(lambda module, inputs, output: print("size rows", tuple(output.shape)))
optimizer = torch.optim.Adagrad(softmax.parameters())
for step in range(2):
    hidden = torch.randn(2048, 64).to(device)
    out, loss = softmax(hidden, words.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
