"""PPO: rollouts of a game on the host, advantages computed backwards, epochs over shuffled minibatches, ended early by the divergence.

Expected: ends well, unreliable (actions are drawn on the card)
Truth: a twin that draws its actions on the host
"""

import os

import torch

torch.manual_seed(0)
draws_on_host = "PROGRAM_TWIN" in os.environ
actor = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 3)).cuda()
critic = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).cuda()
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4)
state = torch.zeros(16, 4)
for iteration in range(2):
    states, actions, old, rewards, values = [], [], [], [], []
    for step in range(32):
        with torch.no_grad():
            here = state.cuda()
            logits = actor(here).log_softmax(-1)
            value = critic(here).squeeze(-1)
        action = torch.randint(3, (16,)).cuda() if draws_on_host else torch.multinomial(logits.exp(), 1).squeeze(1)
        moves = action.cpu()
        state = 0.9 * state + torch.nn.functional.one_hot(moves, 4).float()
        states.append(here)
        actions.append(action)
        old.append(logits.gather(1, action[:, None]).squeeze(1))
        rewards.append((moves == 1).float().cuda())
        values.append(value)
    advantage, gains = torch.zeros(16, device="cuda"), []
    for at in reversed(range(31)):
        advantage = rewards[at] + 0.99 * values[at + 1] - values[at] + 0.95 * 0.99 * advantage
        gains.insert(0, advantage)
    states, actions, old, gains = (torch.cat(some[:31]) for some in (states, actions, old, gains))
    gains = (gains - gains.mean()) / (gains.std() + 1e-8)
    for epoch in range(4):
        for rows in torch.randperm(len(states), device="cuda").split(128):
            now = actor(states[rows]).log_softmax(-1).gather(1, actions[rows, None]).squeeze(1)
            ratio = (now - old[rows]).exp()
            loss = -torch.min(ratio * gains[rows], ratio.clamp(0.8, 1.2) * gains[rows]).mean()
            loss = loss + (critic(states[rows]).squeeze(-1) - gains[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
            optimizer.step()
