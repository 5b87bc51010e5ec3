# What an interpreter lacks: of the modules named, and of those that a script
# imports whenever it runs. Nothing is imported here: an import may take a
# minute.
import ast
import importlib.util
import json
import os
import sys

names, script = json.loads(sys.argv[1]), sys.argv[2]
answer = {"missing": [], "syntax": ""}
if script:
    sys.path[0] = os.path.dirname(script)
    try:
        with open(script, "rb") as f:
            text = f.read(10000001)
        body = ast.parse(text).body if len(text) <= 10000000 else []
    except SyntaxError as e:
        answer["syntax"] = "%s (line %s)" % (e.msg, e.lineno)
        body = []
    for line in body:
        if isinstance(line, ast.Import):
            names += [a.name for a in line.names]
        elif isinstance(line, ast.ImportFrom) and not line.level:
            names.append(line.module)
for name in names:
    name = name.split(".")[0]
    try:
        found = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        found = name in sys.modules
    if not found and name not in answer["missing"] and name != "scalebench":
        answer["missing"].append(name)
print(json.dumps(answer))
