"""Text from files."""

from pathlib import Path

from paceline.errors import UnreadableFile


def read_text(path: Path) -> str:
    """The text of a file; what is wrong with it in one line."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableFile(f"{path} must be a readable file, but: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} must be UTF-8 text, but byte {error.start} is not") from error
