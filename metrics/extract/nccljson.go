package extract

import (
	"fmt"
	"io"
)

// ncclTestsJSON reads the file that nccl-tests writes with -J.
var ncclTestsJSON = Extractor{
	Name:  "nccl-tests-json",
	Kind:  "collective",
	Reads: "the JSON file of nccl-tests -J: results with size, out_of_place and in_place",
	read:  readNCCLJSON,
}

func readNCCLJSON(l *log, r io.Reader) {
	doc := must(l.json(r))
	file := map[string]value{}
	doc.members(file)
	results := file["results"]
	if !doc.is('{') || !results.is('[') && !results.null() {
		l.fail(0, "not results of nccl-tests: want a JSON object with a list named results")
	}
	l.ncclDevices(file)
	row, place := map[string]value{}, map[string]value{}
	var wrong ncclWrong
	results.entries(func(at value) { l.ncclResult(at, row, place, &wrong) })
	wrong.judge(l)
	average := map[string]value{}
	file["average_bus_bandwidth"].members(average)
	if b := average["bandwidth"]; !b.null() {
		l.averageBusBW(l.parse(b.line, string(b.text)))
	}
}

// ncclDevices sets the number of ranks. nccl-tests lists the first rank of each process; each
// process has ngpus ranks in each of its threads (nthreads).
func (l *log) ncclDevices(file map[string]value) {
	config := l.object(file["config"])
	devices, each := config.of["devices"], 1.0
	if devices.null() {
		devices = file["devices"]
	} else {
		for _, name := range []string{"nthreads", "ngpus"} {
			v, ok := config.number(name)
			if ok && v.Number >= 1 && v.Number <= 1024 {
				each *= v.Number
			}
		}
	}
	t := ncclTable{l: l, ranks: map[string]string{}}
	devices.entries(func(at value) {
		t.ranks[fmt.Sprint(len(t.ranks))] = string(l.object(at).of["group"].text)
	})
	t.workers()
	l.res.Workers *= int(each)
}

// ncclResult adds the results for one message size. row and place are maps that it reuses.
func (l *log) ncclResult(at value, row, place map[string]value, wrong *ncclWrong) {
	at.members(row)
	read := func(of value, name string) Value {
		if of.null() {
			l.fail(max(of.line, at.line), "a result without its %s", name)
		}
		return l.parse(of.line, string(of.text))
	}
	size := read(row["size"], "size")
	if size.Number < 0 {
		l.fail(size.Line, "a result without its size")
	}
	if size.Number == 0 {
		l.note("results of 0 bytes left out: they move no data")
		return
	}
	for i, name := range []string{"out_of_place", "in_place"} {
		row[name].members(place)
		if row[name].null() {
			continue
		}
		l.collective("", size.Number, i == 1, func(j int) Value {
			key := []string{"time", "alg_bw", "bus_bw"}[j]
			return read(place[key], key)
		})
		if w := place["nwrong"]; !w.null() {
			wrong.add(size.Number, read(w, "nwrong"))
		}
	}
}
