"""GRPO: several completions of each prompt are sampled until each has ended, rewarded on the host, and trained on with clipped ratios.

Expected: ends well, unreliable (how long completions are is drawn on the card)
Truth: none; how long they are is not known beforehand on a card either
"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
words, end, longest, group = 50, 0, 16, 4
config = GPT2Config(vocab_size=words, n_embd=64, n_layer=2, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=end)
policy = GPT2LMHeadModel(config).cuda()
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4)
prompts = torch.randint(1, words, (2, 8)).repeat_interleave(group, 0).cuda()


def log_probabilities(tokens):
    logits = policy(tokens).logits[:, prompts.shape[1] - 1 : -1].log_softmax(-1)
    return logits.gather(-1, tokens[:, prompts.shape[1] :, None]).squeeze(-1)


for step in range(2):
    tokens, ended = prompts, torch.zeros(len(prompts), dtype=torch.bool, device="cuda")
    with torch.no_grad():
        while tokens.shape[1] < prompts.shape[1] + longest and not ended.all():
            drawn = torch.multinomial(policy(tokens).logits[:, -1].softmax(-1), 1).squeeze(1)
            drawn = drawn.masked_fill(ended, end)
            ended |= drawn == end
            tokens = torch.cat([tokens, drawn[:, None]], 1)
        old = log_probabilities(tokens)
    completions = tokens[:, prompts.shape[1] :]
    mask = (completions == end).cumsum(1).cumsum(1) <= 1
    rewards = torch.tensor([len(set(row)) / len(row) for row in completions.tolist()]).cuda().view(-1, group)
    advantages = ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)).flatten()
    for micro in range(2):
        ratio = (log_probabilities(tokens) - old).exp()
        gain = torch.min(ratio * advantages[:, None], ratio.clamp(0.8, 1.2) * advantages[:, None])
        loss = -((gain * mask).sum(1) / mask.sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
