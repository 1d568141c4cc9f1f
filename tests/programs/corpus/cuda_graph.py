"""A whole training step captured as a CUDA graph and replayed with new batches in the same buffers.

Expected: ends well, exact (the loss is unknown, and printed when all is allocated)
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), capturable=True)
x, y = torch.randn(32, 128, device="cuda"), torch.randint(10, (32,), device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
for _ in range(5):
    x.copy_(torch.randn(32, 128))
    graph.replay()
print("loss", loss.item())
