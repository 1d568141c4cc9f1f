"""torch.export of a model with a batch of any size, and its program run for two sizes.

Expected: ends well, exact
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.SiLU(), torch.nn.Linear(64, 8)).cuda().eval()
batch = torch.export.Dim("batch", min=2, max=64)
program = torch.export.export(model, (torch.randn(4, 32, device="cuda"),), dynamic_shapes=({0: batch},))
for rows in (4, 16):
    assert program.module()(torch.randn(rows, 32, device="cuda")).shape == (rows, 8)
print(len(program.graph.nodes), "nodes")
