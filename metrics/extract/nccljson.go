package extract

import "io"

// ncclTestsJSON reads the file that nccl-tests writes with -J.
var ncclTestsJSON = Extractor{
	Name:  "nccl-tests-json",
	Kind:  "collective",
	Reads: "the JSON file of nccl-tests -J: results with size, out_of_place and in_place",
	read:  readNCCLJSON,
}

// ncclPlaces are the names of a size's results.
var ncclPlaces = []string{"out_of_place", "in_place"}

func readNCCLJSON(l *log, r io.Reader) {
	doc := must(l.json(r))
	file := l.object(doc)
	results := file.of["results"]
	if !doc.is('{') || !results.is('[') && !results.null() {
		l.fail(0, "not results of nccl-tests: want a JSON object with a list named results")
	}
	b := &ncclResults{l: l}
	file.ncclDevices(b)
	result, place := l.object(value{}), l.object(value{}) // reused for each entry
	results.entries(func(at value) {
		result.read(at)
		result.nccl(&place, b)
	})
	b.figures("")
	b.judge("")
	if v, ok := l.object(file.of["average_bus_bandwidth"]).number("bandwidth"); ok {
		b.average(v)
	}
}

// ncclDevices sets the number of ranks. nccl-tests lists the first rank of each process; each
// process has ngpus ranks in each of its threads (nthreads).
func (m members) ncclDevices(b *ncclResults) {
	config := m.l.object(m.of["config"])
	devices, each := config.of["devices"], 1.0
	if devices.null() {
		devices = m.of["devices"]
	} else {
		for _, name := range []string{"nthreads", "ngpus"} {
			if v, ok := config.number(name); ok && v.Number >= 1 && v.Number <= 1024 {
				each *= v.Number
			}
		}
	}
	var groups []string
	devices.entries(func(at value) { groups = append(groups, string(m.l.object(at).of["group"].text)) })
	b.ranks(groups)
	m.l.res.Workers *= int(each)
}

// nccl records the results for one message size. place is a map that it reuses.
func (m members) nccl(place *members, b *ncclResults) {
	size := m.need("size")
	switch {
	case size.Number < 0:
		m.l.fail(size.Line, "a result without its size")
	case size.Number == 0:
		m.l.note("results of 0 bytes left out: they move no data")
		return
	}
	for i, name := range ncclPlaces {
		if m.of[name].null() {
			continue
		}
		place.read(m.of[name])
		wrong, _ := place.number("nwrong")
		b.add(ncclResult{"", size.Number, i == 1, place.need("time"), place.need("alg_bw"), place.need("bus_bw")}, wrong)
	}
}
