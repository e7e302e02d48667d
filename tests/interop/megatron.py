"""Megatron-core's own indexed_dataset.py, loaded from its wheel without PyTorch.

The file runs unmodified. It uses torch only for types and as a base class, and three names of
megatron.core that do not affect the format. Stand-ins replace them, so that the 3 GB of PyTorch are
not needed to read and write files.
"""

import importlib.metadata
import importlib.util
import logging
import pathlib
import sys
import types

import numpy


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__path__ = []
    vars(module).update(members)
    sys.modules[name] = module
    return module


def load():
    """Returns the module megatron.core.datasets.indexed_dataset."""
    root = pathlib.Path(importlib.metadata.distribution("megatron-core").locate_file(
        "megatron/core"))
    data = stand_in("torch.utils.data", Dataset=object)
    utils = stand_in("torch.utils", data=data)
    stand_in("torch", Tensor=numpy.ndarray, utils=utils)
    for name in ("megatron", "megatron.core", "megatron.core.datasets"):
        stand_in(name)
    stand_in("megatron.core.utils", log_single_rank=lambda logger, *rest, **more: logger.log(*rest))
    logging.getLogger("megatron").setLevel(logging.ERROR)
    for name in ("msc_utils", "datasets.object_storage_utils", "datasets.indexed_dataset"):
        full = f"megatron.core.{name}"
        spec = importlib.util.spec_from_file_location(full, root / (name.replace(".", "/") + ".py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)
    return sys.modules["megatron.core.datasets.indexed_dataset"]


class Item(numpy.ndarray):
    """A stand-in that the builder accepts as a torch.Tensor."""

    def __new__(cls, values):
        return numpy.asarray(values, dtype=numpy.int64).view(cls)

    def numpy(self):
        return numpy.asarray(self)


def write(module, prefix, documents, dtype, modes=None):
    """Writes `documents`, lists of sequences, which are lists of tokens; `modes` has a number for
    each sequence."""
    builder = module.IndexedDatasetBuilder(prefix + ".bin", dtype=dtype,
                                           multimodal=modes is not None)
    for number, document in enumerate(documents):
        for place, sequence in enumerate(document):
            builder.add_item(Item(sequence), modes[number][place] if modes else 0)
        builder.end_document()
    builder.finalize(prefix + ".idx")
