//go:build python

package main

import "testing"

func TestPythonFailuresNameTheirCause(t *testing.T) {
	run := "[command]\nrun = [\"/usr/bin/python3\", \"train.py\"]\n"
	failsWith(t, []failure{
		{name: "exception", study: run, files: map[string]string{"train.py": "def load(d):\n    return d['labels']\nprint('starting')\nload({})\n"},
			what: "failed: KeyError: 'labels' (train.py:2); exit code 1", log: "rank-00000.log"},
		// Without site-packages, torch is missing on any machine.
		{name: "no torch", study: "[command]\nrun = [\"/usr/bin/python3\", \"-S\", \"train.py\"]\n", files: map[string]string{"train.py": "import torch\n"},
			what: "failed: ModuleNotFoundError: No module named 'torch' (train.py:1); exit code 1", log: "rank-00000.log", todo: "Install torch for the interpreter"},
		{name: "no script", study: run, what: "can't open file", log: "rank-00000.log", todo: "correct its path in command.run"},
		{name: "syntax", study: run, files: map[string]string{"train.py": "x = = 1\n"},
			what: "failed: SyntaxError: invalid syntax (train.py:1); exit code 1", log: "rank-00000.log"},
		{name: "port in use", study: run, files: map[string]string{"train.py": `import socket
first = socket.create_server(("127.0.0.1", 0))
socket.socket().bind(first.getsockname())
`}, what: "failed: OSError: [Errno 98] Address already in use (train.py:3); exit code 1", log: "rank-00000.log", todo: "MASTER_PORT"},
		{name: "memory", study: run, files: map[string]string{"train.py": `import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
x = bytearray(2 << 30)
`}, what: "failed: MemoryError (train.py:3); exit code 1", log: "rank-00000.log", todo: "Raise resources.memory"},
	})
}
