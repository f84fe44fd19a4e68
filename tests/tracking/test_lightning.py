import pytest

from coderet import tracking
from coderet.tracking import Silent


def test_a_silent_tracker_gives_lightning_no_logger():
    assert tracking.logger(Silent()) is False


def test_lightning_writes_through_the_tracker_and_ends_its_run(store, client):
    torch = pytest.importorskip("torch")
    lightning = pytest.importorskip("lightning.pytorch")

    class Line(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.save_hyperparameters({"batch": 2})
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def training_step(self, batch, index):
            loss = ((self.weight - batch) ** 2).mean()
            self.log("train/loss@step", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    tracker = tracking.start("line", {"batch": 1}, uri=store)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=tracking.logger(tracker),
        log_every_n_steps=1,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Line(), torch.utils.data.DataLoader(torch.ones(4, 1)))
    run = client.get_run(tracker.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.tags["override.batch"] == "1 -> 2"
    assert len(client.get_metric_history(tracker.run_id, "train/loss_at_step")) == 4
