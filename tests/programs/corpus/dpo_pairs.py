"""DPO: a policy and its frozen copy score chosen and rejected answers, padded to the longest of a batch; the share of won pairs is printed.

Expected: ends well, exact if
Truth: the CPU's run (shapes and counted tokens)
"""

import copy
import os

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
config = Qwen2Config(vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2)  # fmt: skip
policy = Qwen2ForCausalLM(config).to(device)
reference = copy.deepcopy(policy).eval().requires_grad_(False)
optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-5)


def padded(answers):
    ids = torch.nn.utils.rnn.pad_sequence(answers, batch_first=True, padding_value=0)
    return ids.to(device), (ids != 0).to(device)


def summed(model, ids, mask):
    logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1].log_softmax(-1)
    taken = logits.gather(-1, ids[:, 1:, None]).squeeze(-1)
    return (taken * mask[:, 1:]).sum(-1)


for step in range(3):
    pairs = [[torch.randint(1, 300, (length,)) for length in torch.randint(8, 50, (4,)).tolist()] for _ in range(2)]
    ids, mask = padded(pairs[0] + pairs[1])
    print("size batch", tuple(ids.shape), mask.sum().item())
    with torch.no_grad():
        expected = summed(reference, ids, mask)
    margin = summed(policy, ids, mask) - expected
    loss = -torch.nn.functional.logsigmoid(0.1 * (margin[:4] - margin[4:])).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("won", (margin[:4] > margin[4:]).float().mean().item())
