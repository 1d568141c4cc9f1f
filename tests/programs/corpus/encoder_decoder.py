"""nn.Transformer with masks for padding and for what comes later, on sequences from the host.

Expected: ends well, exact
"""

import torch

model = torch.nn.Transformer(64, 4, 2, 2, 128, batch_first=True).cuda()
embed, head = torch.nn.Embedding(200, 64).cuda(), torch.nn.Linear(64, 200).cuda()
optimizer = torch.optim.Adam([*model.parameters(), *embed.parameters(), *head.parameters()])
for step in range(2):
    source, target = torch.randint(1, 200, (4, 20)).cuda(), torch.randint(1, 200, (4, 16)).cuda()
    source[2:, 12:] = 0
    padding = source == 0
    later = torch.nn.Transformer.generate_square_subsequent_mask(15, device="cuda")
    out = model(embed(source), embed(target[:, :-1]), tgt_mask=later, src_key_padding_mask=padding, memory_key_padding_mask=padding,
                tgt_is_causal=True)  # fmt: skip
    loss = torch.nn.functional.cross_entropy(head(out).flatten(0, 1), target[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
