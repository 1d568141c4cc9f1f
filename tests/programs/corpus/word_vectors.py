"""word2vec with negative samples drawn by multinomial on the card, from counts that come from the host.

Expected: ends well, exact
"""

import torch

counts = torch.randint(1, 1000, (5000,)).float().pow(0.75).cuda()
inner, outer = (torch.nn.Embedding(5000, 64).cuda() for _ in range(2))
optimizer = torch.optim.SGD([*inner.parameters(), *outer.parameters()], lr=0.05)
for step in range(3):
    centre, context = torch.randint(5000, (128,)).cuda(), torch.randint(5000, (128,)).cuda()
    negative = torch.multinomial(counts, 128 * 5, replacement=True).view(128, 5)
    good = (inner(centre) * outer(context)).sum(-1)
    bad = torch.einsum("bd,bnd->bn", inner(centre), outer(negative))
    loss = -(torch.nn.functional.logsigmoid(good) + torch.nn.functional.logsigmoid(-bad).sum(-1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
