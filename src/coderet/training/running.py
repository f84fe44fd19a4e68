"""Where and how training runs: devices, precision, and what there is to say when a machine cannot.

One process is started; with several devices Lightning starts the others by the same command line, unless torchrun or
SLURM has started them all. See docs/training.md, "Several devices and nodes".
"""

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import torch
from lightning.pytorch import Callback, LightningDataModule, LightningModule, Trainer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.profilers import AdvancedProfiler, PyTorchProfiler, SimpleProfiler
from lightning.pytorch.strategies import DDPStrategy, FSDPStrategy

from coderet import registry
from coderet.records import DataError

PROFILERS = {"simple": SimpleProfiler, "advanced": AdvancedProfiler, "pytorch": PyTorchProfiler}
OUT_OF_MEMORY = ("can't allocate memory", "DefaultCPUAllocator", "out of memory", "bad_alloc")

Precision = Literal["32-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true", "64-true"]


class Running:
    """devices: how many of this machine (`auto`: all its graphics processors, or one process); nodes: such machines.

    strategy: ddp, every device holding the whole encoder, or fsdp, its parts spread over graphics processors; auto is
    ddp where there are several devices. precision: as Lightning calls it. compile: the encoder by `torch.compile`.
    profiler: its report is profile.* in the work folder. deterministic: refuse operations that are not.
    """

    def __init__(
        self,
        *,
        devices: int | Literal["auto"] = 1,
        nodes: int = 1,
        strategy: Literal["auto", "ddp", "fsdp"] = "auto",
        precision: Precision = "32-true",
        compile: bool = False,
        profiler: Literal["simple", "advanced", "pytorch"] | None = None,
        deterministic: bool = False,
    ) -> None:
        registry.check_range("fit.trainer.nodes", nodes, 1)
        if devices != "auto":
            registry.check_range("fit.trainer.devices", devices, 1)
        graphics = torch.cuda.is_available()
        there = torch.cuda.device_count() if graphics else len(os.sched_getaffinity(0))
        self.devices: int = (there if graphics else 1) if devices == "auto" else devices
        if self.devices > there:
            raise registry.BadValue(
                f"fit.trainer.devices is {devices}, but this machine has {there} "
                f"{'graphics processors' if graphics else 'processor cores that this process may use'}; lower it"
            )
        if strategy == "fsdp" and not graphics:
            raise registry.BadValue(
                "fit.trainer.strategy is 'fsdp', which Lightning runs on graphics processors only, and there is none "
                "here; use ddp"
            )
        self.nodes, self.precision, self.deterministic = nodes, precision, deterministic
        self.strategy, self.compile, self.profiler = strategy, compile, profiler

    def fit(
        self,
        module: LightningModule,
        data: LightningDataModule,
        callbacks: list[Callback],
        *,
        epochs: int,
        work: Path,
        checkpoint: Path | None,
        logger: Logger | None,
    ) -> None:
        """Train on all devices, from checkpoint if there is one. DataError, with advice, where memory is too small."""
        encoder: Any = module.encoder
        if self.compile:
            encoder.compile()
        with _quiet(), _told_of_memory():
            trainer = Trainer(
                accelerator="auto",
                devices=self.devices,
                num_nodes=self.nodes,
                strategy=self._strategy(),
                precision=self.precision,
                deterministic=self.deterministic,
                profiler=self.profiler and PROFILERS[self.profiler](dirpath=work, filename="profile"),
                max_epochs=epochs,
                callbacks=callbacks,
                logger=logger or False,
                num_sanity_val_steps=0,
                use_distributed_sampler=False,  # which pairs are whose is said by `laps`
                enable_checkpointing=False,
                enable_model_summary=False,
                enable_progress_bar=sys.stderr.isatty(),
            )
            with _others_end_too(trainer):
                trainer.fit(module, datamodule=data, ckpt_path=checkpoint, weights_only=False)

    def _strategy(self) -> Any:
        if self.strategy == "fsdp":
            return FSDPStrategy(state_dict_type="full")
        if self.devices * self.nodes == 1 and self.strategy == "auto":
            return "auto"
        # A pretrained checkpoint may have weights that no vector depends on, and the last backward pass of a batch in
        # mini-batches goes through one tower. Buffers are constants here; to compare them would be to wait at every
        # validation block, of which devices have different numbers.
        return DDPStrategy(find_unused_parameters=True, broadcast_buffers=False)


@contextlib.contextmanager
def _others_end_too(trainer: Trainer) -> Iterator[None]:
    """What ends this process ends those it started, which would wait for it."""
    try:
        yield
    except ValueError as error:
        if "does not match the world size" not in str(error):
            raise
        raise registry.BadValue(
            f"fit.trainer.devices * nodes is {trainer.num_devices * trainer.num_nodes}, but {os.environ['WORLD_SIZE']} "
            "processes were started from outside; start as many as the params say"
        ) from error
    except BaseException:
        for process in getattr(trainer.strategy.launcher, "procs", []):
            if process.poll() is None:
                process.terminate()
        raise


def is_out_of_memory(error: BaseException) -> bool:
    """Whether error is torch's way, or Python's, to say that memory is too small."""
    words = isinstance(error, RuntimeError) and any(each in str(error) for each in OUT_OF_MEMORY)
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or words


@contextlib.contextmanager
def _told_of_memory() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        said = str(error).split("\n")[0]
        raise DataError(
            f"out of memory ({said}); set batches.mini_batch (the same gradients in less memory) or lower it, lower "
            "encoder.max_document_tokens, set encoder.gradient_checkpointing where the encoder has it or "
            "trainer.precision: bf16-mixed, or lower batches.size. The last checkpoint is as it was"
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Lightning's advice (more workers, other logging) is not for the users of this suite."""
    logs = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [log.level for log in logs]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning")
        for log in logs:
            log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for log, level in zip(logs, levels, strict=True):
                log.setLevel(level)
