"""Reads a JUnit report by junitparser."""
import json
import re
import sys

import junitparser

status, values = {}, {}
for suite in junitparser.JUnitXml.fromfile(sys.argv[1]):
    for case in suite:
        kinds = {junitparser.Failure: "failed", junitparser.Error: "lost"}
        status[case.name] = "done"
        for result in case.result:
            assert kinds[type(result)] == result.type, result.type
            assert "broken <input> & 'more'" in result.text, result.text
            status[case.name] = result.type
        found = values[case.name] = {}
        for name, value in re.findall(
                r'<property name="([^" ]*)[^"]*" value="([^"]*)"',
                case.tostring().decode()):
            found[name] = float(value)
        assert status[case.name] != "done" or case.time > 0
json.dump({"status": status, "values": values}, sys.stdout)
