"""Lightning trains a small model on two devices, and prints what its own metrics say after the last step, for ranks_test.py.

usage: lightning_program.py gpu|cpu STRATEGY FOLDER
"""

import logging
import sys
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))

    def training_step(self, batch, index):
        inputs, labels = batch
        loss = nn.functional.cross_entropy(self.net(inputs), labels)
        self.log("loss", loss, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        inputs, labels = batch
        self.log("accuracy", (self.net(inputs).argmax(1) == labels).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


if __name__ == "__main__":
    accelerator, strategy, folder = sys.argv[1:]
    lightning.seed_everything(0, verbose=False)
    data = TensorDataset(torch.randn(256, 64), torch.randint(10, (256,)))
    trainer = lightning.Trainer(accelerator=accelerator, devices=2, strategy=strategy, max_epochs=2, default_root_dir=folder,
                                enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=1)  # fmt: skip
    trainer.fit(Classifier(), DataLoader(data, batch_size=32), DataLoader(data, batch_size=32))
    if trainer.is_global_zero:
        metrics = {name: round(trainer.callback_metrics[name].item(), 4) for name in ("loss", "accuracy")}
        print("trained", trainer.global_step, metrics, flush=True)
