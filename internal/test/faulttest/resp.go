package faulttest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// errProtocol is wrapped by the errors of bytes that are not RESP.
var errProtocol = errors.New("faulttest: not RESP")

// value is one RESP value, as far as the proxy cares: the bytes themselves are
// kept beside it, see [decoder].
type value struct {
	typ   byte    // the RESP type byte, of the value behind any attributes
	text  string  // of strings, numbers and errors
	elems []value // of arrays, sets, pushes and maps (keys and values in turn)
}

// decoder reads RESP2 and RESP3 values and keeps their bytes, so that they are
// passed on exactly as they came.
type decoder struct {
	r   *bufio.Reader
	raw []byte // the bytes of the value being read
}

// next reads one whole value and returns it with its bytes, which are the
// caller's to keep.
func (d *decoder) next() (value, []byte, error) {
	d.raw = nil
	v, err := d.value()
	return v, d.raw, err
}

// line reads up to the next CRLF, which is not returned.
func (d *decoder) line() (string, error) {
	b, err := d.r.ReadBytes('\n')
	d.raw = append(d.raw, b...)
	if err != nil {
		return "", err
	}
	return string(bytes.TrimRight(b, "\r\n")), nil
}

// body reads n bytes and the CRLF behind them.
func (d *decoder) body(n int) (string, error) {
	at := len(d.raw)
	d.raw = append(d.raw, make([]byte, n+2)...)
	if _, err := io.ReadFull(d.r, d.raw[at:]); err != nil {
		return "", err
	}
	return string(d.raw[at : at+n]), nil
}

func (d *decoder) value() (value, error) {
	head, err := d.line()
	if err != nil {
		return value{}, err
	}
	if head == "" {
		return value{}, fmt.Errorf("%w: empty line", errProtocol)
	}
	v := value{typ: head[0]}
	rest := head[1:]
	switch v.typ {
	case '+', '-', ':', ',', '#', '(', '_', '.':
		v.text = rest
		return v, nil
	case '$', '=', '!', ';':
		v.text, err = d.blob(rest)
		return v, err
	case '*', '~', '>':
		v.elems, err = d.list(rest, 1)
		return v, err
	case '%':
		v.elems, err = d.list(rest, 2)
		return v, err
	case '|':
		// Attributes stand before the value they belong to.
		if _, err := d.list(rest, 2); err != nil {
			return v, err
		}
		return d.value()
	}
	return v, fmt.Errorf("%w: type %q", errProtocol, v.typ)
}

// blob reads what follows a string's length, which is "?" when the string comes
// in chunks.
func (d *decoder) blob(size string) (string, error) {
	if size != "?" {
		n, err := length(size)
		if err != nil || n < 0 { // -1 is RESP2's null
			return "", err
		}
		return d.body(n)
	}
	var text strings.Builder
	for {
		head, err := d.line()
		if err != nil {
			return "", err
		}
		rest, ok := strings.CutPrefix(head, ";")
		if !ok {
			return "", fmt.Errorf("%w: chunk %q", errProtocol, head)
		}
		n, err := length(rest)
		if err != nil || n <= 0 {
			return text.String(), err
		}
		chunk, err := d.body(n)
		if err != nil {
			return "", err
		}
		text.WriteString(chunk)
	}
}

// list reads the elements of an aggregate, each of per values. Its size is "?"
// when the end is marked instead.
func (d *decoder) list(size string, per int) ([]value, error) {
	n := -1
	if size != "?" {
		var err error
		if n, err = length(size); err != nil || n < 0 {
			return nil, err
		}
		n *= per
	}
	var elems []value
	for len(elems) != n {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		if n < 0 && v.typ == '.' {
			break
		}
		elems = append(elems, v)
	}
	return elems, nil
}

// maxLength bounds strings and aggregates, as Redis itself does, so that bytes
// that are not RESP do not become huge allocations.
const maxLength = 512 << 20

func length(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < -1 || n > maxLength {
		return 0, fmt.Errorf("%w: length %q", errProtocol, s)
	}
	return n, nil
}

// command reads one request: an array of strings, or a line of words, which is
// what people type. An empty one, which Redis does not answer, is nil.
func (d *decoder) command() (cmd []string, raw []byte, err error) {
	first, err := d.r.Peek(1)
	if err != nil {
		return nil, nil, err
	}
	if first[0] != '*' {
		d.raw = nil
		line, err := d.line()
		return strings.Fields(line), d.raw, err
	}
	v, raw, err := d.next()
	for _, e := range v.elems {
		cmd = append(cmd, e.text)
	}
	return cmd, raw, err
}
