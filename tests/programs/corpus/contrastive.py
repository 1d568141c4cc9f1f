"""A contrastive loss over images and texts with a learnt temperature, and the rank of the right answer.

Expected: ends well, exact (the rank is an integer that rests on the networks, and printed when all is allocated)
"""

import torch

images = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 128)).cuda()
texts = torch.nn.Sequential(torch.nn.EmbeddingBag(1000, 128), torch.nn.Linear(128, 128)).cuda()
temperature = torch.nn.Parameter(torch.tensor(2.6).cuda())
optimizer = torch.optim.AdamW([*images.parameters(), *texts.parameters(), temperature])
for step in range(2):
    a = torch.nn.functional.normalize(images(torch.rand(64, 3, 32, 32).cuda()), dim=-1)
    b = torch.nn.functional.normalize(texts(torch.randint(1000, (64, 12)).cuda()), dim=-1)
    scores = temperature.exp() * a @ b.T
    right = torch.arange(64, device="cuda")
    loss = (torch.nn.functional.cross_entropy(scores, right) + torch.nn.functional.cross_entropy(scores.T, right)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
rank = (scores > scores.diagonal()[:, None]).sum(1)
print("median rank", rank.median().item())
