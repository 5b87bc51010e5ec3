# What an interpreter lacks: of the modules named, and of those that a script
# imports whenever it runs. Nothing is imported from the script's folder, nor
# from PYTHONPATH: names are looked up there, and neither is ever on sys.path,
# where a lazy import of Python's own would find its modules.
import ast
import importlib.machinery
import importlib.util
import json
import sys
import warnings

warnings.simplefilter("ignore")  # to show one, modules are imported
question = json.load(sys.stdin)
names, answer = question["modules"], {"missing": [], "syntax": ""}
try:
    body = ast.parse(question["source"]).body
except SyntaxError as e:
    answer["syntax"] = "%s (line %s)" % (e.msg, e.lineno)
    body = []
except (ValueError, MemoryError, RecursionError):  # too deep for this parser
    body = []
for line in body:
    if isinstance(line, ast.Import):
        names += [a.name for a in line.names]
    elif isinstance(line, ast.ImportFrom) and not line.level:
        names.append(line.module)
for name in names:
    name = name.split(".")[0]  # find_spec imports what is before a dot
    try:
        found = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        found = name in sys.modules
    if not found and question["folders"]:
        found = importlib.machinery.PathFinder.find_spec(
            name, question["folders"]) is not None
    if not found and name not in answer["missing"] and name != "scalebench":
        answer["missing"].append(name)
json.dump(answer, sys.stdout)
