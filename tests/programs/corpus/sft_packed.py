"""Supervised fine-tuning as TRL's SFTTrainer packs it: answers of different lengths, packed into rows, the prompts masked out of the loss.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (rows and tokens)
"""

import os

import torch
from transformers import LlamaConfig, LlamaForCausalLM

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
config = LlamaConfig(vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, pad_token_id=0)
model = LlamaForCausalLM(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
examples = []
for prompt, answer in zip(torch.randint(3, 20, (40,)).tolist(), torch.randint(5, 60, (40,)).tolist()):
    tokens = torch.randint(1, 300, (prompt + answer,))
    examples.append((tokens, torch.cat([torch.full((prompt,), -100), tokens[prompt:]])))

rows, room = [], 0
for tokens, labels in sorted(examples, key=lambda one: -len(one[0])):
    if len(tokens) > room:
        rows.append([])
        room = 128
    rows[-1].append((tokens, labels))
    room -= len(tokens)
print("size rows", len(rows))

for start in range(0, len(rows), 4):
    batch = rows[start : start + 4]
    longest = max(sum(len(tokens) for tokens, _ in row) for row in batch)
    ids, targets, positions = (torch.full((len(batch), longest), fill) for fill in (0, -100, 0))
    for at, row in enumerate(batch):
        end = 0
        for tokens, labels in row:
            ids[at, end : end + len(tokens)], targets[at, end : end + len(tokens)] = tokens, labels
            positions[at, end : end + len(tokens)] = torch.arange(len(tokens))
            end += len(tokens)
    ids, targets, positions = ids.to(device), targets.to(device), positions.to(device)
    hidden = model.model(input_ids=ids, position_ids=positions).last_hidden_state
    trained = targets[:, 1:] != -100
    logits = model.lm_head(hidden[:, :-1][trained])
    print("size trained", logits.shape[0], ids.shape[1])
    loss = torch.nn.functional.cross_entropy(logits, targets[:, 1:][trained])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item())
