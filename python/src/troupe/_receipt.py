"""The receipt of a job as a dictionary, in the shape of `troupe receipt -o json`."""

from __future__ import annotations

from typing import Any, Dict, Iterable

from troupe._convert import to_dict
from troupe.v1 import receipt_pb2, step_pb2, worker_pb2

# Fields of the whole job, which the receipt of one of its other plans lacks.
_OF_JOB = ("job", "state", "compile", "write_method", "other_plans")


def _counts(counts: Iterable[worker_pb2.OperationCount]) -> Dict[str, int]:
    return {each.operation: each.count for each in counts}


def _compile(compile_: receipt_pb2.Receipt.Compile) -> Dict[str, Any]:
    result = to_dict(compile_)
    if not compile_.HasField("compiler"):
        return {**result, "compiler": None}
    result["compiler"]["cache_faults"] = _counts(compile_.compiler.cache_faults)
    return result


def _steady(steady: receipt_pb2.Receipt.Steady) -> Dict[str, Any]:
    mean = steady.mean
    measured = mean.HasField("data_wait_seconds")
    result = to_dict(steady, ("steps", "seconds"))
    for name in ("fastest_step_seconds", "slowest_step_seconds"):
        result[name] = getattr(steady, name) if steady.steps > 0 else None
    result.update(to_dict(steady, ("tokens_per_second", "mfu", "mfu_convention")))
    exposed = {each.purpose: each.exposed for each in mean.communication}
    total = {each.purpose: each.total for each in mean.communication}
    result["exposed_communication_seconds"] = exposed if measured else None
    result["communication_seconds"] = total if measured else None
    result["bubble"] = {"planned": to_dict(steady, ("bubble_planned",))["bubble_planned"],
                        "measured": to_dict(mean, ("bubble_ratio",))["bubble_ratio"]}
    figures = [field.name for field in step_pb2.StepFigures.DESCRIPTOR.fields]
    result.update(to_dict(mean, (name for name in figures
                                 if name not in ("bubble_ratio", "communication"))))
    return result


def receipt_dict(receipt: receipt_pb2.Receipt) -> Dict[str, Any]:
    result = to_dict(receipt, ("job", "state", "plan_digest"))
    environment = to_dict(receipt.environment)
    for name in ("driver", "libraries"):
        environment[name] = environment[name] or None
    result["environment"] = environment
    result.update(to_dict(receipt, ("topology",)))
    result["model_mix"] = {"pattern": receipt.pattern,
                           "blocks": {each.block: each.count for each in receipt.blocks}}
    result.update(to_dict(receipt, ("batch_geometry", "sequence_length")))
    result["workload"] = {"family": receipt.workload_family,
                          "documents": "masked" if receipt.document_mask else "joined"}
    result.update(to_dict(receipt, ("seen_pairs",)))
    result["precision"] = {"intended": receipt.precision_intended,
                           "executed": receipt.precision_executed or None}
    result["compile"] = _compile(receipt.compile) if receipt.HasField("compile") else None
    result.update(to_dict(receipt, ("compiler_options",)))
    result.update(to_dict(receipt, ("warm_up", "steps_apart", "schedule", "overlap_policy")))
    result["bucket_policy"] = {**to_dict(receipt.bucket),
                               "measured_on": receipt.bucket_measured_on}
    result["steady"] = _steady(receipt.steady)
    result["fallbacks"] = _counts(receipt.fallbacks) if receipt.ready else None
    result["target_shape"] = {"tokens_per_step": receipt.target_tokens_per_step,
                              "reached": receipt.target_reached}
    if receipt.target_missed:
        result["target_shape"]["why"] = receipt.target_missed
    result["write_method"] = _counts(receipt.checkpoint_writes)
    result.update(to_dict(receipt, ("restarts", "moves", "suspect")))
    others = [receipt_dict(other) for other in receipt.other_plans]
    result["other_plans"] = [{key: value for key, value in other.items() if key not in _OF_JOB}
                             for other in others]
    return result
