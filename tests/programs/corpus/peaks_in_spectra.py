"""Sounds from the host: spectrograms, the frequencies that stand out, frames that are silent, and the sound made again of the rest.

Expected: ends well, lower bound (cuFFT's workspaces)
Truth: the CPU's run (peaks and frames)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
time = torch.arange(4096) / 4096
sound = torch.zeros(4096)
for frequency, begin, end in ((220, 0, 1500), (330, 800, 3000), (550, 2500, 3500)):
    sound[begin:end] += torch.sin(2 * torch.pi * frequency * time[begin:end])
sound = sound.to(device)
spectrum = torch.fft.rfft(sound).abs()
padded = torch.nn.functional.pad(spectrum, (1, 1))
peaks = (spectrum > padded[:-2]) & (spectrum > padded[2:]) & (spectrum > 0.5 * spectrum.max())
print("size peaks", peaks.nonzero().squeeze(1).tolist())
frames = torch.stft(sound, 256, window=torch.hann_window(256).to(device), return_complex=True)
loud = frames.abs().square().sum(0).sqrt() > 1.0
print("size frames", tuple(frames.shape), loud.sum().item())
again = torch.istft(frames * loud, 256, window=torch.hann_window(256).to(device))
print("size again", tuple(again.shape), frames[:, loud].abs().argmax(0).unique().tolist())
