"""Parquet files: tables written whole, columns read by name. The only file that imports pyarrow."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import UnreadableFile
from paceline.extras import extra
from paceline.files import all_or_nothing

if TYPE_CHECKING:
    import pyarrow as pa


def arrow() -> Any:
    """pyarrow, which takes its time to load."""
    with extra("lab", "a Parquet file"):
        import pyarrow as pa
        import pyarrow.parquet

    return pa


def write_tables(path: Path, tables: Iterable["pa.Table"], mode: int | None = None) -> None:
    """Tables one after the other, a row group each, into one file, all or nothing, with these permissions if given."""
    waiting = iter(tables)
    first = next(waiting)
    with table_writer(path, first.schema, mode) as write:
        for table in chain([first], waiting):
            write(table)


@contextmanager
def table_writer(
    path: Path, schema: "pa.Schema", mode: int | None = None, **options: Any
) -> Iterator[Callable[["pa.Table"], None]]:
    """What writes tables as they come, a row group each, into one file, all or nothing.

    Nothing in the bytes depends on when or where the work was done. Statistics of the columns, unless ``options`` ask
    for them, are left out: they would take more memory than a small row group itself.
    """
    chosen = {"compression": "zstd", "write_statistics": False, **options}
    with (
        all_or_nothing(path, mode) as unfinished,
        arrow().parquet.ParquetWriter(unfinished, schema, **chosen) as writer,
    ):
        yield lambda table: writer.write_table(table, row_group_size=max(table.num_rows, 1))


def table_of(columns: Mapping[str, type], rows: Sequence[Sequence[object]]) -> "pa.Table":
    """Rows of whole numbers, floats and texts; None stands for no value."""
    pa = arrow()
    kinds = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    values = zip(*rows, strict=True) if rows else [[]] * len(columns)
    arrays = [pa.array(column, kinds[kind]) for kind, column in zip(columns.values(), values, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(columns))


class ParquetColumns(Mapping[str, Any]):
    """The columns of a file by name. Each is read when it is asked for: a log may be much wider than what is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        names, self.rows = self._read(lambda file: (file.schema_arrow.names, file.metadata.num_rows))
        self._names = dict.fromkeys(names)
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise UnreadableFile(f"{path}: names of columns must differ, got {twice[0]!r} twice")

    def __getitem__(self, name: str) -> Any:
        """An array, or a list with None where the file has no value; an array of numbers has no place for that."""
        if name not in self._names:
            raise KeyError(name)
        column = self._read(lambda file: file.read(columns=[name]).column(name))
        return column.to_pylist() if column.null_count else column.to_numpy()

    def table(self) -> "pa.Table":
        """All columns at once."""
        return self._read(lambda file: file.read())

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _read(self, part: Any) -> Any:
        pa = arrow()
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise UnreadableFile(f"{self.path} must be a readable file, but: {error.strerror}") from error
        with file:
            try:
                return part(pa.parquet.ParquetFile(file))
            except (OSError, pa.ArrowException) as error:
                raise UnreadableFile(f"{self.path} must be a Parquet file; it is damaged or of another kind") from error
