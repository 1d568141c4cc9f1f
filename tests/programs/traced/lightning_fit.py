"""Lightning's Trainer: mixed precision, accumulation, a validation, a checkpoint."""

import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 10))

    def training_step(self, batch, index):
        inputs, labels = batch
        loss = nn.functional.cross_entropy(self.net(inputs), labels)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        inputs, labels = batch
        self.log("accuracy", (self.net(inputs).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


data = TensorDataset(torch.randn(256, 512), torch.randint(10, (256,)))
trainer = lightning.Trainer(accelerator="gpu", devices=1, precision="bf16-mixed", max_epochs=2, accumulate_grad_batches=2, default_root_dir="out",
                            enable_progress_bar=False, enable_model_summary=False, logger=False, num_sanity_val_steps=0)  # fmt: skip
trainer.fit(Classifier(), DataLoader(data, batch_size=64), DataLoader(data, batch_size=128))
print("peak", torch.cuda.max_memory_allocated())
