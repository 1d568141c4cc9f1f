"""A checkpoint of model, optimizer, schedule and generators, written, read on the card and trained on.

Expected: ends well, exact if (numbers that nobody knows are read)
"""

import pathlib
import tempfile

import torch


def make():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 8)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2)


def train(model, optimizer, schedule, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(16, 64, device="cuda")).square().mean().backward()
        optimizer.step()
        schedule.step()


with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "checkpoint.pt")
    parts = make()
    train(*parts, 3)
    torch.save({"parts": [part.state_dict() for part in parts], "random": torch.cuda.get_rng_state()}, path)
    parts = make()
    state = torch.load(path, map_location="cuda", weights_only=True)
    for part, kept in zip(parts, state["parts"], strict=True):
        part.load_state_dict(kept)
    torch.cuda.set_rng_state(state["random"].cpu())
    train(*parts, 2)
