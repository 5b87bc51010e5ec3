package study

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Preprocess holds the keys of kind = "preprocess". Such runs read samples from storage,
// prepare them for a training, and optionally write them to storage. Workers are processes
// that divide the files among them; by default, each has as many threads as CPUs.
type Preprocess struct {
	Format   string `toml:"format" json:"format"`     // one of PreprocessFormats
	Source   string `toml:"source" json:"source"`     // folder, relative to the study file, or s3://BUCKET/PREFIX
	Target   string `toml:"target" json:"target"`     // like Source; "": prepared samples are discarded
	Generate int    `toml:"generate" json:"generate"` // number of samples to generate in Source if it is empty; 0: none

	Cache   string `toml:"cache" json:"cache"`     // one of preprocessCaches: which part of the source is in memory at the start
	Shuffle bool   `toml:"shuffle" json:"shuffle"` // read files in an order drawn from the seed
	Passes  int    `toml:"passes" json:"passes"`   // number of passes over the source
	Threads int    `toml:"threads" json:"threads"` // threads per worker; 0: as many as CPUs

	Decoder string `toml:"decoder" json:"decoder"` // decoder for JPEG, one of preprocessDecoders
	Resize  int    `toml:"resize" json:"resize"`   // pixels of the shorter side
	Crop    int    `toml:"crop" json:"crop"`       // pixels of the square cut from the middle

	Shard    Bytes   `toml:"shard" json:"shard"`       // size of the files in Target; each file is synced to disk
	Consumer float64 `toml:"consumer" json:"consumer"` // maximum samples/s of a simulated trainer; 0: no trainer
	Ceilings bool    `toml:"ceilings" json:"ceilings"` // also measure reading, writing and training separately

	Model        string  `toml:"model" json:"model"`                 // one of PreprocessModels, which is trained on the samples instead of simulating a trainer; "": none
	Batch        int     `toml:"batch" json:"batch"`                 // per worker
	LearningRate float64 `toml:"learning_rate" json:"learning_rate"` // for stochastic gradient descent with momentum 0.9
}

// PreprocessFormats are the storage formats of samples. Package preprocess has the same
// list; this copy lets scalebench check a study without linking that package. A test of the
// worker compares the two lists.
var PreprocessFormats = []string{"jpeg", "tar", "tfrecord", "parquet", "cifar10", "csv"}

// PreprocessModels are the models that can be trained on the prepared samples.
// PreprocessClassified are the formats whose samples have the class that such a model
// learns.
var (
	PreprocessModels     = []string{"cnn", "mlp", "resnet20", "resnet32", "resnet44", "resnet56"}
	PreprocessClassified = []string{"cifar10", "jpeg"}
)

// preprocessCaches are the values of workload.cache, which part of the source is in memory
// at the start: "cold" nothing, "warm" as much as the page cache holds, and "memory" all of
// it, in the process's own memory.
var preprocessCaches = []string{"cold", "warm", "memory"}

// preprocessDecoders are the JPEG decoders: "auto" is libjpeg-turbo if the worker and the
// node have it, else Go's.
var preprocessDecoders = []string{"auto", "go", "turbojpeg"}

func (Preprocess) kind() kind { return preprocess }

var preprocess = kind{
	bounds:     []string{"workload.passes"},
	frameworks: []string{"native"},
	defaults: Workload{Kind: "preprocess", Preprocess: Preprocess{
		Format: "jpeg", Cache: "warm", Passes: 1, Decoder: "auto", Resize: 256, Crop: 224, Shard: 64 << 20, Ceilings: true,
		Batch: 32, LearningRate: 0.05,
	}},
	rules: map[string]rule{
		"workload.format":   among(PreprocessFormats...),
		"workload.source":   folderNamed,
		"workload.target":   oneLine,
		"workload.generate": within(0, 1<<30),
		"workload.cache":    among(preprocessCaches...),
		"workload.passes":   within(1, 1<<20),
		"workload.threads":  within(0, 1<<12),
		"workload.decoder":  among(preprocessDecoders...),
		"workload.resize":   within(1, 1<<14),
		"workload.crop":     within(1, 1<<14),
		"workload.shard":    within(1<<20, 1<<40),
		"workload.consumer": atLeast(0),

		"workload.model":         among(append([]string{""}, PreprocessModels...)...),
		"workload.batch":         within(1, 1<<16),
		"workload.learning_rate": above(0),
	},
	follows:   map[string][]string{"workload.crop": {"workload.resize"}},
	plausible: map[string]any{"workload.source": "."},
	files:     []string{"workload.source", "workload.target"},
	objects:   []string{"workload.source", "workload.target"},
	expand:    expandPreprocess,
}

func folderNamed(v any) string {
	if v.(string) == "" {
		return `missing; name the folder to read from, relative to the study file, like source = "data"`
	}
	return oneLine(v)
}

// objectScheme is the prefix of sources and targets in an object store.
const objectScheme = "s3://"

// mostObject is the maximum size of a shard in an object store, in bytes. It is limited by
// multipart uploads.
const mostObject = 64 << 30

// bucketName matches names that Amazon allows. It rejects passwords, as in
// s3://KEY:SECRET@bucket.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// objectNamed returns what is wrong with the name of a source or target in an object store;
// "" if it is valid.
func objectNamed(name string) string {
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(name, objectScheme), "/")
	switch {
	case !bucketName.MatchString(bucket):
		return "want s3://BUCKET or s3://BUCKET/PREFIX; BUCKET has 3 to 63 lower-case letters, digits, dots and hyphens; AWS_ENDPOINT_URL names the server"
	case strings.Contains("/"+prefix+"/", "//") && prefix != "":
		return "has an empty part in its prefix, between two slashes"
	}
	return ""
}

// located returns a file name in the study as an absolute path, and the name of a source in
// an object store unchanged.
func (d *decoder) located(k kind, key, at, name string) string {
	if !strings.HasPrefix(name, objectScheme) || !slices.Contains(k.objects, key) {
		return d.path(at, name)
	}
	name = objectScheme + strings.TrimRight(strings.TrimPrefix(name, objectScheme), "/")
	d.rule(at, objectNamed(name))
	return name
}

func expandPreprocess(p *Point) map[string]string {
	wrong := map[string]string{}
	w := &p.Workload.Preprocess
	if w.Crop > w.Resize {
		wrong["workload.crop"] = fmt.Sprintf("cannot cut %d pixels from a shorter side of %d; raise workload.resize", w.Crop, w.Resize)
	}
	if strings.HasPrefix(w.Source, objectScheme) && w.Generate > 0 {
		wrong["workload.generate"] = "makes samples in folders only, not in an object store; have them made in a folder, copy them there with the store's own tool, and leave this key out"
	}
	switch {
	case w.Model == "":
	case w.Consumer > 0:
		wrong["workload.consumer"] = "is the rate of a simulated trainer, and workload.model has a real one take the samples; leave one of them out"
	case !slices.Contains(PreprocessClassified, w.Format):
		wrong["workload.model"] = fmt.Sprintf("is trained on samples whose class is known: those of format = %s, not %q", strings.Join(quoted(PreprocessClassified), " or "), w.Format)
	}
	if strings.HasPrefix(w.Target, objectScheme) && w.Shard > mostObject {
		wrong["workload.shard"] = "an object is written in 10,000 parts of 8 MiB at most; set 64G or less"
	}
	if p.Resources.Device != "cpu" {
		wrong["resources.device"] = fmt.Sprintf("kind = \"preprocess\" computes on \"cpu\" only, not %q", p.Resources.Device)
	}
	return wrong
}
