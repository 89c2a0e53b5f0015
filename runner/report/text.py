"""Text from outside in one line: settings, paths, errors and names come from strangers, and may hold anything."""


def one_line(text: str) -> str:
    """The text in one line of printable characters: each that would steer a terminal or a page is shown as \ufffd."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """The text in its lines, with \ufffd for each character that would steer a terminal or a page."""
    if text.replace("\n", "").isprintable():  # as a rule, and a page has millions of characters
        return text
    return "".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in text.expandtabs())
