"""Text from outside in one line: settings, paths, errors and names come from strangers, and may hold anything."""


def one_line(text: str) -> str:
    """The text in one line of printable characters: each that would steer a terminal or a page is shown as \ufffd."""
    return "".join(one if one.isprintable() else "\ufffd" for one in " ".join(text.split()))
