"""Packages of PyPI that the extra `troupe[data]` installs. Each is imported where it is needed."""

from __future__ import annotations

import importlib
from typing import Any

from troupe.errors import InvalidArgument


def need(module: str, reason: str) -> Any:
    """Returns the module. Raises InvalidArgument, with the reason, if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise InvalidArgument(f"{reason}, and the package {package} cannot be imported ({error}): "
                              "pip install 'troupe[data]'") from None
