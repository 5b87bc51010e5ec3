"""Asks a program's own parser what it makes of command lines.

Standard input: {"fields": [...], "lines": [{"world", "arguments"}, ...]}.
Standard output, for each line: {"values": [...]}, those of the fields, or
{"refused": "what the parser said"}.
"""
import contextlib
import io
import json
import sys


def value(parsed, field):
    for name in field.split("."):
        parsed = getattr(parsed, name)
    return parsed


def answer(parse, fields, line):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            parsed = parse(line["world"], line["arguments"])
        except (Exception, SystemExit) as error:
            return {"refused": f"{said.getvalue()}\n{error}".strip()}
    return {"values": [value(parsed, field) for field in fields]}


def main(parse):
    asked = json.load(sys.stdin)
    answers = [answer(parse, asked["fields"], line) for line in asked["lines"]]
    json.dump(answers, sys.stdout)
