"""A reward model on pairs: the score stands at the last token that is not padding, and the mask says which that is.

Expected: ends well, exact if
Truth: the CPU's run (last positions and lengths)
"""

import os

import torch
from transformers import GPT2Config, GPT2Model

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
body = GPT2Model(GPT2Config(vocab_size=100, n_embd=64, n_layer=2, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=0)).to(device)
head = torch.nn.Linear(64, 1, bias=False).to(device)
optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=1e-4)
for lengths in torch.randint(5, 40, (2, 8)):
    mask = (torch.arange(int(lengths.max()))[None] < lengths[:, None]).long().to(device)
    ids = torch.randint(100, tuple(mask.shape)).to(device) * mask
    last = mask.sum(1) - 1
    longest = int(last.max()) + 1
    print("size last", last.tolist(), longest)
    hidden = body(input_ids=ids[:, :longest], attention_mask=mask[:, :longest]).last_hidden_state
    reward = head(hidden[torch.arange(8, device=device), last]).squeeze(-1)
    loss = -torch.nn.functional.logsigmoid(reward[:4] - reward[4:]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", float(loss))
