"""Text from files."""

import gzip
import zlib
from pathlib import Path

from paceline.errors import UnreadableFile


def read_text(path: Path) -> str:
    """The text of a file, unpacked where its name ends with .gz; what is wrong with it in one line."""
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            return str(file.read())
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UnreadableFile(f"{path} must be a gzip file, but: {error}") from error
    except OSError as error:
        raise UnreadableFile(f"{path} must be a readable file, but: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} must be UTF-8 text, but byte {error.start} is not") from error
