"""A page of a report, read as a browser would."""

from html.parser import HTMLParser

VOID = {"img", "meta", "line"}


class Reader(HTMLParser):
    """Tables as rows of texts, the texts of everything, attributes; and whether every element is closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.attributes += [(name, key, value or "") for key, value in attributes]
        if name not in VOID:
            self.open.append(name)
        self.texts.setdefault(name, []).append("")
        if name == "table":
            self.tables.append([])
        elif name == "tr":
            self.tables[-1].append([])
        elif name in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, name):
        if name not in VOID:
            assert self.open.pop() == name

    def handle_data(self, data):
        for name in set(self.open):
            self.texts[name][-1] += data
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def values(self, key: str) -> list[str]:
        return [value for _, found, value in self.attributes if found == key]
