"""Every optimizer of torch.optim that takes dense gradients, three steps each, in its default form.

Expected: ends well, exact if (numbers that nobody knows are read)
"""

import torch

for name in ("Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "Muon"):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128, bias=False), torch.nn.Linear(128, 16, bias=False)).cuda()
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-3)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.randn(32, 64, device="cuda")).square().mean().backward()
        optimizer.step()
    print(name, len(optimizer.state))
