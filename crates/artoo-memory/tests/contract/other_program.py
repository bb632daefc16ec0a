"""Reads an artoo memory with Google's LevelDB: `python3 other_program.py FOLDER` (needs `pip install plyvel`; the store must not be open).

Prints each Megram as JSON, one a line, as `artoo memory export` does, and checks that the index keys of each are there.
"""

import json
import sys
from urllib.parse import quote

try:
    import plyvel
except ImportError:
    sys.exit(77)


def part(text):
    """A part of a key: `|`, `%` and control characters are escaped, all else stays."""
    return "".join(quote(c, safe="") if c in "|%" or ord(c) < 32 or 127 <= ord(c) < 160 else c for c in text)


store = plyvel.DB(sys.argv[1], create_if_missing=False)
for key, value in store.iterator(prefix=b"m|"):
    megram = json.loads(value)
    ident = part(megram["id"])
    assert key.decode() == f"m|{ident}", key
    for index in (f"x|{part(megram['space'])}|{part(megram['entity'])}|{ident}", f"l|{megram['level']}|{ident}"):
        assert store.get(index.encode()) == b"", index
    del megram["crc"]
    print(json.dumps(megram, ensure_ascii=False))
store.close()
