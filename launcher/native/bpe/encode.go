package bpe

import (
	"bufio"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Error reports that a text is not valid UTF-8. At is the offset of the first wrong
// byte.
type Error struct{ At int }

func (e *Error) Error() string { return fmt.Sprintf("byte %d of the text is not UTF-8", e.At) }

// piece is the approximate number of bytes of a text that are encoded together.
const piece = 1 << 20

// EncodeAll encodes a text of any length, and calls each with the token IDs of one
// piece after the other. A piece ends at the end of a line. The characters before and
// after that line end must not be white space: the words that the patterns of GPT-2
// and Llama 3 match do not extend beyond such a place and do not depend on what
// follows.
func (t *Tokenizer) EncodeAll(text io.Reader, each func(ids []uint32) error) error {
	in := bufio.NewReaderSize(text, 1<<16)
	var now strings.Builder
	done := 0
	flush := func() error {
		ids, err := t.Encode(now.String())
		if wrong, ok := errors.AsType[*Error](err); ok {
			return &Error{done + wrong.At}
		}
		if err != nil {
			return fmt.Errorf("from byte %d on: %w", done, err)
		}
		done += now.Len()
		now.Reset()
		return each(ids)
	}
	for {
		line, err := in.ReadString('\n')
		now.WriteString(line)
		switch {
		case errors.Is(err, io.EOF):
			if now.Len() == 0 {
				return nil
			}
			return flush()
		case err != nil:
			return err
		}
		if now.Len() < piece {
			continue
		}
		next, err := in.Peek(1)
		if n := len(line); err == nil && n > 1 && printed(line[n-2]) && printed(next[0]) {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

// printed reports whether a byte is a visible ASCII character.
func printed(b byte) bool { return b > ' ' && b < 0x7f }

// Encode returns the token IDs of a text. It adds no special tokens at the start or
// the end.
func (t *Tokenizer) Encode(text string) ([]uint32, error) {
	if err := valid(text); err != nil {
		return nil, err
	}
	var ids []uint32
	err := t.named(text, t.added, &ids)
	return ids, err
}

// named encodes the special tokens that the text contains by name, and the text
// between them.
func (t *Tokenizer) named(text string, added []additions, ids *[]uint32) error {
	if text == "" {
		return nil
	}
	if len(added) == 0 {
		return t.cutUp(text, 0, ids)
	}
	for {
		at := added[0].names.FindStringIndex(text)
		if at == nil {
			return t.named(text, added[1:], ids)
		}
		if err := t.named(text[:at[0]], added[1:], ids); err != nil {
			return err
		}
		*ids = append(*ids, added[0].ids[text[at[0]:at[1]]])
		text = text[at[1]:]
	}
}

// cutUp splits a text into words by the patterns from number step on, and encodes
// each word.
func (t *Tokenizer) cutUp(text string, step int, ids *[]uint32) error {
	if text == "" {
		return nil
	}
	if step == len(t.words) {
		*ids = append(*ids, t.word(text)...)
		return nil
	}
	matches, err := t.words[step].FindAllStringIndex(text, -1)
	if err != nil {
		return fmt.Errorf("pre_tokenizer: %w", err)
	}
	end := 0
	for _, m := range matches {
		for _, to := range m { // text between two matches is a word, too
			if err := t.cutUp(text[end:to], step+1, ids); err != nil {
				return err
			}
			end = to
		}
	}
	return t.cutUp(text[end:], step+1, ids)
}

// Limits on the cache of words and their token IDs. The cache helps because most of a
// text consists of few different words.
const (
	remembered  = 1 << 17
	longestKept = 64 // bytes
)

func (t *Tokenizer) word(word string) []uint32 {
	if id, ok := t.whole[word]; ok {
		return []uint32{id}
	}
	if ids, ok := t.known[word]; ok {
		return ids
	}
	ids := t.merged(word)
	if len(word) <= longestKept && len(t.known) < remembered {
		t.known[strings.Clone(word)] = ids
	}
	return ids
}

// symbol is a token of a word while its tokens are merged.
type symbol struct {
	id         uint32
	prev, next int // -1: none
	gone       bool
}

// candidate is a possible merge of a symbol with the next symbol, as they were when
// it was found.
type candidate struct {
	merge
	at int
}

// candidates is a heap of merges, ordered by rank and then from left to right.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// merged returns the token IDs of a word. Starting from its bytes, it repeatedly
// merges the pair of neighbours with the lowest rank; of several equal pairs, the
// leftmost.
func (t *Tokenizer) merged(word string) []uint32 {
	list := make([]symbol, len(word))
	for i := range list {
		list[i] = symbol{id: t.bytes[word[i]], prev: i - 1, next: i + 1}
	}
	list[len(list)-1].next = -1
	var queue candidates
	look := func(at int) {
		if at < 0 || list[at].next < 0 {
			return
		}
		p := pair{list[at].id, list[list[at].next].id}
		if m, ok := t.merges[p]; ok {
			heap.Push(&queue, candidate{m, at})
		}
	}
	for i := range list {
		look(i)
	}
	for queue.Len() > 0 {
		c := heap.Pop(&queue).(candidate)
		left := &list[c.at]
		if left.gone || left.next < 0 {
			continue
		}
		if m, ok := t.merges[pair{left.id, list[left.next].id}]; !ok || m.id != c.id {
			continue // one of the two symbols has been merged since
		}
		right := &list[left.next]
		right.gone = true
		left.id, left.next = c.id, right.next
		if left.next >= 0 {
			list[left.next].prev = c.at
		}
		look(left.prev)
		look(c.at)
	}
	var ids []uint32
	for at := 0; at >= 0; at = list[at].next {
		ids = append(ids, list[at].id)
	}
	return ids
}
