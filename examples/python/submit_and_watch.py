"""Submits a job and watches it to its end, using only proto/ of Troupe.

  python submit_and_watch.py --coordinator 127.0.0.1:7000 --train PREFIX [--steps 20] [--name NAME]

grpcio-tools generates the client from the .proto files at the start; a project would do this in its
build.
"""

import argparse
import importlib
import importlib.resources
import pathlib
import sys
import tempfile
import uuid

try:
    import grpc
    from grpc_tools import protoc
except ImportError as lacking:
    sys.exit(f"{lacking}: install the packages of "
             f"{pathlib.Path(__file__).with_name('requirements.txt')}: pip install -r it")

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


def generate(folder):
    sources = sorted(str(path) for path in PROTO.rglob("*.proto"))
    include = importlib.resources.files("grpc_tools") / "_proto"
    code = protoc.main(
        ["protoc", f"-I{PROTO}", f"-I{include}", f"--python_out={folder}",
         f"--grpc_python_out={folder}", *sources]
    )
    if code != 0:
        sys.exit("protoc failed")
    sys.path.insert(0, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coordinator", required=True)
    parser.add_argument("--train", required=True,
                        help="prefix of PREFIX.bin and PREFIX.idx, an absolute path")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--name", default="python-" + uuid.uuid4().hex[:8])
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        generate(folder)
        job_pb2 = importlib.import_module("troupe.v1.job_pb2")
        service_pb2 = importlib.import_module("troupe.v1.service_pb2")
        service_pb2_grpc = importlib.import_module("troupe.v1.service_pb2_grpc")

        job = job_pb2.JobSpec(
            name=arguments.name,
            model=job_pb2.ModelSpec(
                pattern="(AD)x2", hidden_size=64, num_attention_heads=4, intermediate_size=128,
                vocab_size=259
            ),
            data=job_pb2.DataSpec(train=arguments.train),
            training=job_pb2.TrainingSpec(
                steps=arguments.steps, sequence_length=64, global_batch_size=8, micro_batch_size=2
            ),
            parallelism=job_pb2.ParallelismSpec(tensor_parallel_degree=2),
        )
        # A proxy of the environment has no business between this program and its coordinator.
        options = [("grpc.enable_http_proxy", 0)]
        with grpc.insecure_channel(arguments.coordinator, options) as channel:
            jobs = service_pb2_grpc.JobServiceStub(channel)
            created = jobs.CreateJob(
                service_pb2.CreateJobRequest(job=job, request_id=uuid.uuid4().hex), timeout=10
            ).job
            print("submitted", created.name, flush=True)
            for update in jobs.WatchJob(service_pb2.WatchJobRequest(name=created.name),
                                        timeout=300):
                kind = update.WhichOneof("update")
                if kind == "step":
                    print(f"step {update.step.step} loss {update.step.loss:.6f}", flush=True)
                elif kind == "event":
                    print("event", update.event.event, update.event.message, flush=True)
                elif kind == "end":
                    state = service_pb2.JobState.Name(update.end).removeprefix("JOB_STATE_")
                    print("end", state, flush=True)
                    return 0 if state == "SUCCEEDED" else 1
    return 1


if __name__ == "__main__":
    sys.exit(main())
