package extract

import "slices"

// lightningCSV reads metrics.csv of Lightning's CSVLogger. Each call that logs something adds a
// row, in which most cells are empty. If ThroughputMonitor is used, the file also has rank 0's
// rate over a window, and that rate multiplied by the world size.
var lightningCSV = Extractor{
	Name:  "lightning-csv",
	Kind:  "train",
	Apart: true,
	Reads: "a CSV file with the columns epoch, step and val_acc, or ThroughputMonitor's",
	read:  lightningTable.read,
}

var lightningTable = &tableFormat{
	separators:  ",",
	epoch:       "epoch",
	step:        "step",
	accuracy:    append(slices.Clone(validation), "val_Accuracy"),
	rate:        []string{"train/samples_per_sec", "train|samples_per_sec", "train/" + ofDevice, "train|" + ofDevice, "train|device|samples_per_sec"},
	seconds:     []string{"train/time", "train|time"},
	samples:     []string{"train/samples", "train|samples"},
	secondsNote: "from the first training batch of rank 0 to the last that ThroughputMonitor logged",
	rateNote:    "rank 0's rate times the world size, as ThroughputMonitor computes it; the median of its windows",
	needs:       "neither an accuracy nor a rate among the columns %s; name them with accuracy= and throughput=",
}
