package extract

// kerasCSVLogger reads the file that Keras' CSVLogger callback writes: one row per epoch,
// starting with epoch 0.
var kerasCSVLogger = Extractor{
	Name:  "keras-csvlogger",
	Kind:  "train",
	Apart: true,
	Reads: "a CSV file with the columns epoch and val_accuracy",
	read:  kerasTable.read,
}

var kerasTable = &tableFormat{
	separators: ",;\t|",
	epoch:      "epoch",
	epochs:     true,
	accuracy:   validation,
	losses:     []string{"val_loss"},
	needs:      "no column with the validation accuracy; the file has %s",
}

// validation lists common names of the accuracy on the validation set.
var validation = []string{"val_accuracy", "val_acc", "val_sparse_categorical_accuracy", "val_categorical_accuracy", "val_binary_accuracy",
	"val/accuracy", "val/acc", "valid_acc", "valid_accuracy", "validation_accuracy", "test_acc", "test_accuracy"}
