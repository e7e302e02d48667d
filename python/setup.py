"""Builds the wheel: generates the protocol and the dataclasses of troupe from ../proto.

The generated files are in the wheel only, never in the source tree.
"""

import importlib.resources
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
ROOT = HERE.parent
API = "troupe/v1/service.proto"


def version():
    return re.search(r"project\(troupe VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def protoc(*arguments):
    include = importlib.resources.files("grpc_tools") / "_proto"
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}",
                    f"-I{include}", *arguments], check=True)


def plugin(name):
    path = shutil.which(name, path=f"{pathlib.Path(sys.executable).parent}") or shutil.which(name)
    if path is None:
        raise SystemExit(f"{name} was not found; the package mypy-protobuf has it")
    return f"--plugin={name}={path}"


class Build(build_py):
    def run(self):
        super().run()
        if not (ROOT / "proto" / API).exists():
            raise SystemExit(f"the wheel is built in a checkout of Troupe: {ROOT} has no proto/")
        import generate_messages  # needs packages of the build only

        output = pathlib.Path(self.build_lib)
        described = output / "service.descriptors"
        protoc("--include_imports", "--include_source_info", f"--descriptor_set_out={described}",
               API)
        files = generate_messages.files_of(described.read_bytes(), "troupe/")
        protoc(plugin("protoc-gen-mypy"), plugin("protoc-gen-mypy_grpc"),
               f"--python_out={output}", f"--mypy_out=quiet:{output}", *files)
        protoc(plugin("protoc-gen-mypy_grpc"), f"--grpc_python_out={output}",
               f"--mypy_grpc_out=quiet:{output}", API)
        (output / "troupe/v1/__init__.py").write_text('"""Generated from proto/troupe/v1."""\n')
        (output / "troupe/messages.py").write_text(
            generate_messages.source(described.read_bytes()), encoding="utf-8")
        described.unlink()


setup(version=version(), cmdclass={"build_py": Build})
