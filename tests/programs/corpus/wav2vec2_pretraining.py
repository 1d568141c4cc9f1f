"""wav2vec 2.0 of transformers on raw sounds: masked spans and negatives that NumPy draws, a quantiser with Gumbel noise, a contrastive loss.

Expected: ends well, unreliable (whether a negative is the positive one is a truth that rests on the network)
Truth: the CPU's run (frames and masked frames)
"""

import os

import numpy as np
import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForPreTraining
from transformers.models.wav2vec2.modeling_wav2vec2 import _compute_mask_indices, _sample_negative_indices

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.backends.cudnn.enabled = False
np.random.seed(0)
torch.manual_seed(0)
config = Wav2Vec2Config(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, conv_dim=(32, 32, 32),
                        conv_stride=(5, 4, 4), conv_kernel=(10, 8, 4), num_conv_pos_embedding_groups=4, num_conv_pos_embeddings=16,
                        codevector_dim=32, proj_codevector_dim=32, num_codevectors_per_group=32, num_negatives=10, layerdrop=0.0)  # fmt: skip
model = Wav2Vec2ForPreTraining(config).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    sounds = torch.randn(2, 8000).to(device)
    frames = int(model._get_feat_extract_output_lengths(8000))
    masked = _compute_mask_indices((2, frames), mask_prob=0.4, mask_length=4)
    negatives = _sample_negative_indices((2, frames), 10, masked)
    masked, negatives = torch.tensor(masked, device=device), torch.tensor(negatives, device=device)
    print("size frames", frames, masked.sum().item(), tuple(negatives.shape))
    out = model(sounds, mask_time_indices=masked, sampled_negative_indices=negatives)
    optimizer.zero_grad()
    out.loss.backward()
    optimizer.step()
    print("loss", out.loss.item())
