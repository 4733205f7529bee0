"""Files of `name=value` lines, as Java's tools have them."""


def parse_properties(text: str) -> dict[str, str]:
    r"""The values by name, by the rules of Java's `Properties.load`.

    `#` and `!` begin comments, `=`, `:` and blanks end a name, a backslash at a line's end joins the next to
    it. Elsewhere a backslash escapes what follows: one that is meant, as in a password, is written twice.
    Blanks at a line's end belong to the value.

    Raises:
        ValueError: There is a `\u` without four hexadecimal digits, or javaproperties is not installed.
            Values can be secrets: none is in the message.
    """
    try:
        import javaproperties  # noqa: PLC0415 - an extra, for those who have such a file
    except ModuleNotFoundError as error:
        install = "pip install 'kafka-assignors[cli]'"
        raise ValueError(f"that needs javaproperties ({error}): {install}") from error
    try:
        found: dict[str, str] = javaproperties.loads(text)
    except javaproperties.InvalidUEscapeError as error:
        raise ValueError(r"a \u without four digits: to write a backslash, double it") from error
    return found
