"""Three tests that hold a model's device memory. Without a GPU: peakbench emulate -- python3 -m pytest"""

import pytest
import torch

from model import BATCH, WIDTH, Block, train

PARAMETER = 4 * WIDTH * WIDTH * 4  # bytes, of one of a block's two matrices


@pytest.mark.device_memory(2 * PARAMETER)
def test_building_takes_the_parameters_and_nothing_more():
    model = Block().cuda()
    assert sum(parameter.nbytes for parameter in model.parameters()) == 2 * PARAMETER


@pytest.mark.device_memory("6 MiB", at="reserved")
def test_training_with_sgd():
    model = Block().cuda()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, foreach=False))


@pytest.mark.device_memory("1.3 MiB", card="h100-80gb")
def test_inference_keeps_no_activations():
    model = Block().requires_grad_(False).half().cuda()
    kept = []
    for _ in range(4):
        kept.append(model(torch.zeros(BATCH, WIDTH, dtype=torch.half, device="cuda")).sum())
    assert len(kept) == 4
