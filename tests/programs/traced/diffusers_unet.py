"""A step of training for diffusers' UNet with cross-attention, through accelerate."""

import accelerate
import diffusers
import torch

accelerator = accelerate.Accelerator(mixed_precision="bf16")
unet = diffusers.UNet2DConditionModel(sample_size=32, in_channels=4, out_channels=4, block_out_channels=(64, 128), layers_per_block=1, cross_attention_dim=64,
                                      attention_head_dim=8, norm_num_groups=8, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                      up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))  # fmt: skip
unet.enable_gradient_checkpointing()
schedule = diffusers.DDPMScheduler(num_train_timesteps=1000)
unet, optimizer = accelerator.prepare(unet, torch.optim.AdamW(unet.parameters(), lr=1e-4))
for _step in range(3):
    latents = torch.randn(4, 4, 32, 32).to(accelerator.device)
    noise = torch.randn_like(latents)
    times = torch.randint(0, 1000, (4,)).to(accelerator.device)
    text = torch.randn(4, 16, 64).to(accelerator.device)
    guess = unet(schedule.add_noise(latents, noise, times), times, encoder_hidden_states=text).sample
    accelerator.backward(torch.nn.functional.mse_loss(guess.float(), noise))
    accelerator.clip_grad_norm_(unet.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
print("peak", torch.cuda.max_memory_allocated())
