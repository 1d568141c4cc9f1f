"""A loop of accelerate: gradients are gathered over micro-batches, clipped, and metrics are gathered over all processes, of which there is one.

Expected: ends well, exact if (a network as small as this has values); how a card rounds
Truth: the CPU's run (steps and gathered labels)
"""

import os

import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=2, cpu=os.environ.get("PROGRAM_DEVICE") == "cpu")
torch.manual_seed(0)
samples = torch.utils.data.TensorDataset(torch.randn(90, 64), torch.randint(4, (90,)))
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 4))
parts = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), torch.utils.data.DataLoader(samples, batch_size=16))
model, optimizer, loader = parts
steps, gathered, losses = 0, [], []
for x, y in loader:
    with accelerator.accumulate(model):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            steps += 1
        optimizer.step()
        optimizer.zero_grad()
    gathered.append(accelerator.gather_for_metrics(y))
    losses.append(loss.item())
labels = torch.cat(gathered)
print("size steps", steps, len(labels), torch.bincount(labels, minlength=4).tolist())
