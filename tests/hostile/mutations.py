"""Files gone wrong: bytes in, other bytes out, the same for the same seed."""

import re
import sqlite3

NUMBERS = (b"0", b"-1", b"1", b"255", b"65536", b"2147483648", b"4294967296", b"9223372036854775807", b"-9223372036854775808",
           b"9223372036854775808", b"18446744073709551615", b"1e308", b"1e999", b"-1e999", b"0.1", b"nan", b"NaN", b"inf",
           b"Infinity", b"null", b"true", b"[]", b"{}", b'""', b'"1"', b"1" * 400)
TEXTS = (b"", b"\x1b[2J\x1b]0;pwned\x07", b"\x1b[31m", b"\\u001b[31m", b"\xc2\x9b31m", b"\\u009b31m", b"\xef\xbf\xbe", b"\\ufffe", b"\\ud800",
         b"\x00", b"\\u0000", b"../../../settings.json", b"/etc/passwd", b"..", b"a/b", b"<script>alert(1)</script>", b"]]>", b"{{title}}",
         b"{{#calc}}1/0{{/calc}}", b"%s%n", b"'; DROP TABLE runs; --", b"\xff\xfe", b"\xe2\x80\xae", b"\xed\xa0\x80", b"\r\n", b"|", b"inf", b"nan",
         b"A" * 5000, b"." * 3000, b"\xf0\x9f\x92\xa5")
_NUMBER = re.compile(rb"-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = re.compile(rb'"((?:[^"\\\n]|\\.)*)"')


def _span(rng, data, most=64):
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randint(1, most))


def cut(rng, data):
    return data[: rng.randrange(len(data) + 1)]


def flip_bits(rng, data):
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def set_bytes(rng, data):
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 16))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(changed)


def swap_bytes(rng, data):
    if len(data) < 2:
        return data
    changed = bytearray(data)
    first, second = rng.randrange(len(data)), rng.randrange(len(data))
    changed[first], changed[second] = changed[second], changed[first]
    return bytes(changed)


def delete(rng, data):
    start, end = _span(rng, data, max(64, len(data) // 4))
    return data[:start] + data[end:]


def duplicate(rng, data):
    start, end = _span(rng, data, max(64, len(data) // 4))
    return data[:end] + data[start:end] * rng.choice((1, 1, 2, 20)) + data[end:]


def splice(rng, data):
    """A piece from somewhere else in the file, over or between what is there."""
    start, end = _span(rng, data, max(64, len(data) // 4))
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[start:end] + data[at + rng.choice((0, end - start)) :]


def replace_number(rng, data):
    found = list(_NUMBER.finditer(data))
    if not found:
        return flip_bits(rng, data)
    one = rng.choice(found)
    return data[: one.start()] + rng.choice(NUMBERS) + data[one.end() :]


def replace_string(rng, data):
    """What is between two quotes: by something nasty, or by another of the file's."""
    found = list(_STRING.finditer(data))
    if not found:
        return splice(rng, data)
    one = rng.choice(found)
    new = rng.choice(TEXTS) if rng.random() < 0.7 else rng.choice(found).group(1)
    return data[: one.start(1)] + new + data[one.end(1) :]


def insert_text(rng, data):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TEXTS) + data[at:]


def delete_line(rng, data):
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def swap_lines(rng, data):
    lines = data.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def nest(rng, data):
    """Brackets as deep as a parser that calls itself cannot go."""
    depth = rng.choice((10, 1000, 200_000))
    one = rng.choice((b"[", b'{"a":', b"((", b"{{#groups}}", b"a."))
    at = rng.randrange(len(data) + 1)
    return data[:at] + one * depth + data[at:]


BYTES = (cut, flip_bits, flip_bits, set_bytes, swap_bytes, delete, duplicate, splice)
WORDS = (replace_number, replace_number, replace_string, replace_string, insert_text, delete_line, swap_lines)


def of_text(rng, data):
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        # Nesting is expensive to read and soon known.
        how = nest if rng.random() < 0.01 else rng.choice(BYTES if rng.random() < 0.4 else WORDS)
        data = how(rng, data)
    return data


def of_bytes(rng, data):
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(BYTES)(rng, data)
    return data


def within(rng, data, begin, end):
    """Bytes of a stretch changed, its length kept: what lies behind it stays where it was."""
    piece = of_text(rng, data[begin:end])[: end - begin]
    return data[:begin] + piece + b" " * (end - begin - len(piece)) + data[end:]


# --- SQLite: statements that leave a sound file with other content ----------------------------------------

_VALUES = ("NULL", "-1", "0", "1", "7", "9223372036854775807", "-9223372036854775808", "1e308", "9e999", "'text'", "x'00ff'", "''",
           "char(27) || '[31m'", "'../../../x'", "zeroblob(100000)", "char(65534)", "x'ff'", "'inf'", "'nan'")
_ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {} FROM c"


def sqlite_statements(rng, tables):
    """One change of the content or the schema. `tables`: name to its columns."""
    table = rng.choice(sorted(tables))
    column = rng.choice(tables[table])
    value = rng.choice(_VALUES)
    some = rng.choice(("", f" WHERE rowid % {rng.randint(1, 9)} = 0", " WHERE rowid = 1"))
    endless = _ENDLESS.format(", ".join(f"x AS {name}" for name in tables[table]))
    return rng.choice((
        f"UPDATE {table} SET {column} = {value}{some}",
        f"UPDATE {table} SET {column} = {value}{some}",
        f"UPDATE {table} SET {column} = {column} {rng.choice('+-*')} {rng.choice((1, 7, 1 << 40))}{some}",
        f"DELETE FROM {table}{some}",
        f"DROP TABLE {table}",
        f"DROP TABLE {table}; CREATE VIEW {table} AS {endless}",
        f"ALTER TABLE {table} RENAME TO was; CREATE VIEW {table} AS SELECT * FROM was",
        f"ALTER TABLE {table} RENAME TO was; CREATE VIEW {table} AS SELECT a.* FROM was a, was b, was c, was d",
        f"ALTER TABLE {table} RENAME COLUMN {column} TO other",
        f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
        f"PRAGMA user_version = {rng.choice((-1, 0, 2, 99, 2147483647))}",
        f"PRAGMA application_id = {rng.choice((-1, 0, 1))}",
        f"CREATE TRIGGER t{rng.randrange(99)} AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END",
    ))


def in_sqlite(rng, path):
    """Changes the database in its place."""
    with sqlite3.connect(path, isolation_level=None) as database:
        database.text_factory = bytes
        names = [row[0].decode() for row in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        tables = {name: [row[1].decode() for row in database.execute(f"PRAGMA table_info({name})")] for name in names}
        for _ in range(rng.choice((1, 1, 2))):
            try:
                database.executescript(sqlite_statements(rng, tables))
            except sqlite3.Error:
                continue
    database.close()


def of_sqlite(rng, data, scratch):
    """Half of them damaged files, half of them sound ones with content that makes no sense."""
    if rng.random() < 0.5:
        return of_bytes(rng, data)
    scratch.write_bytes(data)
    in_sqlite(rng, scratch)
    return scratch.read_bytes()
