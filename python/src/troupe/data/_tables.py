"""Texts in a column of a table: Parquet files, and folders that `Dataset.save_to_disk` of the
package `datasets` has written. Both are read with pyarrow, a part at a time."""

from __future__ import annotations

import json
import os
from typing import Any, BinaryIO, Collection, Iterator, NamedTuple

from troupe._plain_file import read_plain_file
from troupe.data._decompressed import position
from troupe.data._libraries import need
from troupe.errors import InvalidArgument

DEFAULT_COLUMN = "text"
MOST_TEXT_BYTES = 64 << 20
_STATE = "state.json"  # of a datasets folder: it names the data files in their order
_INFO = "dataset_info.json"
_SPLITS = "dataset_dict.json"
_MOST_STATE_BYTES = 64 << 20
_READ_BYTES = 4 << 20  # of a column of Parquet at once, about


class Row(NamedTuple):
    place: str
    text: bytes
    part: float  # of the rows of its file, up to this one


def is_parquet_name(path: str) -> bool:
    return path.endswith(".parquet")


def is_datasets_folder(path: str, names: Collection[str]) -> bool:
    """Whether a folder with these entries is one of the package `datasets`. Raises InvalidArgument
    for a folder of several splits: one of them may be for evaluation."""
    if _SPLITS in names:
        raise InvalidArgument(f"{path} has several splits of a dataset ({_SPLITS}): state the "
                              "folder of one, such as its subfolder train")
    return _STATE in names and _INFO in names


def _check_column(pyarrow: Any, schema: Any, column: str, path: str) -> None:
    found = schema.get_all_field_indices(column)
    if len(found) != 1:
        is_there = "has no" if not found else f"has {len(found)} columns of the name, not one"
        names = ", ".join(json.dumps(name[:40]) for name in schema.names[:8])
        names += ", …" if len(schema.names) > 8 else ""
        raise InvalidArgument(f"{path}: {is_there} column {json.dumps(column)}; its columns are "
                              f"[{names}]; --column states the one of the text")
    kind = schema.field(found[0]).type
    if not pyarrow.types.is_string(kind) and not pyarrow.types.is_large_string(kind):
        raise InvalidArgument(f"{path}: the column {json.dumps(column)} has {kind}, not strings")


def _texts(values: Any, first_row: int, path: str, column: str) -> Iterator["tuple[str, bytes]"]:
    """Yields place and text of each of the column's values, of which the first is a row's."""
    for row, value in enumerate(values, first_row):
        place = f"{path}[{row}]"
        buffer = value.as_buffer()
        if buffer is None:
            raise InvalidArgument(f"{place}: the row has null in the column {json.dumps(column)}, "
                                  "not a string")
        if buffer.size > MOST_TEXT_BYTES:
            raise InvalidArgument(f"{place}: the text has {buffer.size} bytes, more than "
                                  f"{MOST_TEXT_BYTES}")
        yield place, buffer.to_pybytes()


def parquet_rows(file: BinaryIO, path: str, column: str) -> Iterator[Row]:
    """Yields the texts of a Parquet file. Raises InvalidArgument, which names file, row and value.
    """
    pyarrow = need("pyarrow", f"{path} is a Parquet file")
    parquet = need("pyarrow.parquet", f"{path} is a Parquet file")
    try:
        opened = parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
        _check_column(pyarrow, opened.schema_arrow, column, path)
        row, rows = 0, max(opened.metadata.num_rows, 1)
        batch_rows = max(1, min(_READ_BYTES * rows // _column_bytes(opened.metadata, column), 4096))
        for batch in opened.iter_batches(batch_size=batch_rows, columns=[column]):
            for place, text in _texts(batch.column(0), row, path, column):
                row += 1
                yield Row(place, text, row / rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidArgument(f"{path}: cannot be read as a Parquet file: {error}") from None


def _column_bytes(metadata: Any, column: str) -> int:
    """Returns the bytes of a column in all row groups, at least one."""
    total = 1
    for group in range(metadata.num_row_groups):
        columns = metadata.row_group(group)
        for i in range(columns.num_columns):
            chunk = columns.column(i)
            if chunk.path_in_schema == column:
                total += chunk.total_uncompressed_size
    return total


def _data_files(folder: str) -> "list[str]":
    """Returns the paths of the folder's files with rows, in their order."""
    path = os.path.join(folder, _STATE)
    try:
        state = json.loads(read_plain_file(path, _MOST_STATE_BYTES)[0])
        names = [entry["filename"] for entry in state["_data_files"]]
        has_indices = bool(state.get("_indices_data_files"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidArgument(f"{path}: does not state the files of the dataset, as save_to_disk "
                              "writes it") from None
    if has_indices:
        raise InvalidArgument(f"{path}: an old version of datasets wrote it, with a list of rows: "
                              "save the dataset again")
    for name in names:
        if not isinstance(name, str) or os.path.basename(name) != name or name in ("", ".", ".."):
            raise InvalidArgument(f"{path}: names the file {json.dumps(name)}, which is not one of "
                                  "the folder")
    return [os.path.join(folder, name) for name in names]


def dataset_files(folder: str) -> "list[tuple[str, int]]":
    """Returns the files with rows of a datasets folder, in their order, and their bytes. Raises
    OSError, and InvalidArgument."""
    return [(path, os.stat(path).st_size) for path in _data_files(folder)]


def arrow_rows(path: str, column: str) -> Iterator[Row]:
    """Yields the texts of a file of a datasets folder. Raises as parquet_rows."""
    pyarrow = need("pyarrow", f"{path} is a file of the package datasets")
    try:
        # Mapped, so that columns that are not used are not read.
        with pyarrow.memory_map(path, "r") as file:
            size = max(file.size(), 1)
            with pyarrow.ipc.open_stream(file) as stream:
                _check_column(pyarrow, stream.schema, column, path)
                row = 0
                for batch in stream:
                    values = batch.column(batch.schema.get_field_index(column))
                    for place, text in _texts(values, row, path, column):
                        row += 1
                        yield Row(place, text, position(file) / size)
    except (pyarrow.ArrowException, OSError) as error:
        raise InvalidArgument(f"{path}: cannot be read as an Arrow file: {error}") from None
