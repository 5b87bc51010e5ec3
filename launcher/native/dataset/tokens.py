"""Writes the token IDs of texts, by a tokenizer.json of Hugging Face.

Arguments: the tokenizer, then the path of each text and of its output. Prints
JSON: the vocabulary, the bytes of an ID, the tokens and bytes of each text.
"""

import json
import sys
from array import array

try:
    from tokenizers import Tokenizer
except ImportError:
    sys.exit("it has no module tokenizers; pip install tokenizers, or name an"
             " interpreter that has it with --python")

PIECE = 1 << 20  # bytes of text to encode at once
BATCH = 16  # pieces to encode in parallel


def visible(byte):
    return b" " < byte < b"\x7f"


def pieces(file):
    """Cuts a text at ends of lines between two visible ASCII characters. No
    word of GPT-2's, Llama 3's and similar tokenizers spans such a place."""
    lines, size, done, end = [], 0, 0, b""
    for line in file:
        if size >= PIECE and visible(end) and visible(line[:1]):
            yield done, b"".join(lines)
            done += size
            lines, size = [], 0
        lines.append(line)
        size += len(line)
        end = line[-2:-1]
    yield done, b"".join(lines)


def decoded(path):
    with open(path, "rb") as file:
        for done, piece in pieces(file):
            try:
                yield piece.decode()
            except UnicodeDecodeError as error:
                at = done + error.start
                sys.exit(f"{path}: byte {at} of the text is not UTF-8")


def batches(texts):
    batch = []
    for text in texts:
        batch.append(text)
        if len(batch) == BATCH:
            yield batch
            batch = []
    yield batch


def load(path):
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:
        sys.exit(f"{path}: not a tokenizer.json: {error}")
    dropout = getattr(tokenizer.model, "dropout", None)
    if dropout:
        sys.exit(f"{path}: model.dropout is {dropout:g}, which encodes a text"
                 " differently each time; set it to null")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def write(tokenizer, text, output, kind):
    tokens, size = 0, 0
    with open(output, "xb") as file:
        for batch in batches(decoded(text)):
            for piece in tokenizer.encode_batch(batch,
                                                add_special_tokens=False):
                ids = array(kind, piece.ids)
                tokens += len(ids)
                if sys.byteorder == "big":
                    ids.byteswap()
                ids.tofile(file)
            size += sum(len(piece.encode()) for piece in batch)
    return {"tokens": tokens, "text": size}


tokenizer = load(sys.argv[1])
vocabulary = max(tokenizer.get_vocab().values(), default=-1) + 1
kind = "H" if vocabulary <= 1 << 16 else "I"
paths = iter(sys.argv[2:])
print(json.dumps({
    "vocabulary": vocabulary,
    "bytes": array(kind).itemsize,
    "files": [write(tokenizer, *pair, kind) for pair in zip(paths, paths)],
}))
