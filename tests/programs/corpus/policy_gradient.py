"""REINFORCE on a small game that is played on the host: actions are drawn on the card and read one by one.

Expected: ends well, unreliable (actions are drawn on the card)
"""

import torch

policy = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2)).cuda()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(3):
    state, log_probabilities, rewards = torch.zeros(4), [], []
    for step in range(10):
        choice = torch.distributions.Categorical(logits=policy(state.cuda()))
        action = choice.sample()
        log_probabilities.append(choice.log_prob(action))
        assert action.item() in (0, 1)
        state = state + (0.1 if action.item() else -0.1)
        rewards.append(1.0 - state.abs().mean().item())
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0).cuda()
    loss = -(torch.stack(log_probabilities) * (returns - returns.mean()) / (returns.std() + 1e-6)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
