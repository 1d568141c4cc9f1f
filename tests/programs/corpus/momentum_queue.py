"""MoCo: a queue of keys whose pointer is an integer on the card, an encoder that follows by momentum, and a batch that wraps around.

Expected: ends well, exact
Truth: a twin whose pointer is an integer of the host
"""

import copy
import os

import torch

on_host = "PROGRAM_TWIN" in os.environ
size = 4096
query = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 128)).cuda()
key = copy.deepcopy(query).requires_grad_(False)
optimizer = torch.optim.SGD(query.parameters(), lr=0.03)
queue = torch.nn.functional.normalize(torch.randn(128, size, device="cuda"), dim=0)
pointer = torch.zeros(1, dtype=torch.long, device="cuda")
host_pointer, wrapped = 0, []
for step in range(6):
    x = torch.randn(1000, 512, device="cuda")
    q = torch.nn.functional.normalize(query(x), dim=1)
    with torch.no_grad():
        for slow, fast in zip(key.parameters(), query.parameters()):
            slow.mul_(0.999).add_(fast, alpha=0.001)
        k = torch.nn.functional.normalize(key(x + 0.1 * torch.randn_like(x)), dim=1)
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.clone()], 1) / 0.07
    loss = torch.nn.functional.cross_entropy(logits, torch.zeros(len(x), dtype=torch.long, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    at = host_pointer if on_host else int(pointer)
    until = min(at + len(x), size)
    queue[:, at:until] = k[: until - at].T
    if at + len(x) > size:
        wrapped.append(k[until - at :].clone())
        queue[:, : at + len(x) - size] = wrapped[-1].T
    host_pointer = (host_pointer + len(x)) % size
    pointer[0] = (pointer[0] + len(x)) % size
print("wrapped", [len(some) for some in wrapped])
assert [len(some) for some in wrapped] == [904]
