package preprocess

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// A record in a TFRecord file consists of its length (8 bytes), the checksum of the length, the
// data, and the checksum of the data. The checksum is a CRC-32C that is rotated and to which a
// constant is added (https://www.tensorflow.org/tutorials/load_data/tfrecord).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func masked(b []byte) uint32 {
	crc := crc32.Checksum(b, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// encodedImage is the name of the feature of a tf.train.Example that contains the JPEG file.
// TensorFlow's converters for ImageNet use this name.
const encodedImage = "image/encoded"

// fromTFRecord reads the images from the examples in a TFRecord file and verifies the checksums.
func fromTFRecord(t *thread, f reading, size int64, do func([]byte) error) error {
	from := t.buffer(f)
	var head [12]byte
	for n := 1; ; n++ {
		t.enter(Unpack)
		if _, err := io.ReadFull(from, head[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		length := binary.LittleEndian.Uint64(head[:8])
		switch {
		case masked(head[:8]) != binary.LittleEndian.Uint32(head[8:]):
			return fmt.Errorf("record %d: the checksum of its length is wrong; this is no TFRecord file, or it is damaged or compressed", n)
		case length > uint64(size) || length > maxSample:
			return fmt.Errorf("record %d has %d bytes, in a file of %d; want %d at most", n, length, size, maxSample)
		}
		t.sample = sized(t.sample, int(length)+4)
		if _, err := io.ReadFull(from, t.sample); err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		record := t.sample[:length]
		if masked(record) != binary.LittleEndian.Uint32(t.sample[length:]) {
			return fmt.Errorf("record %d: its checksum is wrong", n)
		}
		image, err := feature(record, encodedImage)
		if err == nil {
			err = do(image)
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
	}
}

// feature returns the first value of a bytes feature in a tf.train.Example: Example { Features features = 1 },
// Features { map<string, Feature> feature = 1 }, Feature { BytesList bytes_list = 1 }, BytesList { repeated
// bytes value = 1 }.
func feature(example []byte, name string) (value []byte, err error) {
	var names []string
	err = fields(example, func(features []byte) error {
		return fields(features, func(entry []byte) error {
			var key string
			var content []byte
			err := eachField(entry, func(number protowire.Number, b []byte) error {
				switch number {
				case 1:
					key = string(b)
				case 2:
					content = b
				}
				return nil
			})
			if err != nil || key != name {
				names = append(names, key)
				return err
			}
			return fields(content, func(list []byte) error {
				return fields(list, func(b []byte) error {
					if value == nil {
						value = b
					}
					return nil
				})
			})
		})
	})
	if err == nil && value == nil {
		slices.Sort(names)
		err = fmt.Errorf("the example has no feature %q of bytes; it has %q", name, strings.Join(names, ", "))
	}
	return value, err
}

// fields calls do with the contents of each length-delimited field with number 1 of a protobuf
// message.
func fields(message []byte, do func([]byte) error) error {
	return eachField(message, func(number protowire.Number, b []byte) error {
		if number != 1 {
			return nil
		}
		return do(b)
	})
}

// eachField calls do with the number and contents of each length-delimited field of a protobuf
// message.
func eachField(message []byte, do func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("no tf.train.Example: %w", protowire.ParseError(n))
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return fmt.Errorf("no tf.train.Example: %w", protowire.ParseError(size))
		}
		if kind == protowire.BytesType {
			b, _ := protowire.ConsumeBytes(message)
			if err := do(number, b); err != nil {
				return err
			}
		}
		message = message[size:]
	}
	return nil
}

func generateTFRecord(n int, seed uint64, create func(string) (io.WriteCloser, error)) error {
	return shards(n, seed, ".tfrecord", create, func(w io.Writer) (func(int, []byte) error, func() error) {
		return func(_ int, file []byte) error { return writeRecord(w, example(file)) }, func() error { return nil }
	})
}

// example returns an encoded tf.train.Example that contains the image file.
func example(file []byte) []byte {
	within := func(b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
	}
	entry := within([]byte(encodedImage))
	entry = protowire.AppendTag(entry, 2, protowire.BytesType)
	entry = protowire.AppendBytes(entry, within(within(file)))
	return within(within(entry))
}

func writeRecord(w io.Writer, record []byte) error {
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(record)))
	head = binary.LittleEndian.AppendUint32(head, masked(head))
	for _, part := range [][]byte{head, record, binary.LittleEndian.AppendUint32(nil, masked(record))} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
