"""Batches copied on a stream of their own from pinned memory while the step before runs, with events and record_stream.

Expected: ends well, exact if (a card may not be done with a block that is handed out again)
"""

import torch

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
copies = torch.cuda.Stream()
batches = [torch.randn(64, 512).pin_memory() for _ in range(4)]


def fetch(batch):
    with torch.cuda.stream(copies):
        moved, event = batch.to("cuda", non_blocking=True), torch.cuda.Event()
        event.record(copies)
    return moved, event


following = fetch(batches[0])
for index in range(4):
    batch, event = following
    torch.cuda.current_stream().wait_event(event)
    batch.record_stream(torch.cuda.current_stream())
    if index + 1 < 4:
        following = fetch(batches[index + 1])
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
