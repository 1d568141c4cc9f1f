"""A speech model with the CTC loss, targets of different lengths, and a greedy reading of the result.

Expected: ends well, exact if (how a card rounds)
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(40, 128), torch.nn.ReLU(), torch.nn.Linear(128, 29)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(2):
    log_probabilities = model(torch.randn(80, 4, 40).cuda()).log_softmax(-1)
    targets = torch.randint(1, 29, (4, 12)).cuda()
    loss = torch.nn.functional.ctc_loss(log_probabilities, targets, torch.full((4,), 80), torch.tensor([12, 9, 7, 5]), zero_infinity=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
best = torch.unique_consecutive(log_probabilities[:, 0].argmax(-1))
print(len([token for token in best.tolist() if token]), "letters")
