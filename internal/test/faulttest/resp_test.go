package faulttest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

var values = map[string]string{
	"simple string":    "+OK\r\n",
	"error":            "-ERR no\r\n",
	"number":           ":-12\r\n",
	"blob":             "$5\r\na\r\nbc\r\n",
	"empty blob":       "$0\r\n\r\n",
	"RESP2 nulls":      "*2\r\n$-1\r\n*-1\r\n",
	"null":             "_\r\n",
	"scalars":          "*4\r\n,1.5\r\n#t\r\n(123456789012345678901234567890\r\n_\r\n",
	"verbatim":         "=7\r\ntxt:abc\r\n",
	"blob error":       "!5\r\nERR x\r\n",
	"nested":           "*3\r\n*1\r\n:1\r\n%1\r\n+k\r\n~2\r\n:1\r\n:2\r\n*0\r\n",
	"push":             ">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nx\r\n",
	"attributes":       "|1\r\n+ttl\r\n:3600\r\n*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n",
	"chunked string":   "$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n",
	"array with end":   "*?\r\n:1\r\n*?\r\n.\r\n:2\r\n.\r\n",
	"map with end":     "%?\r\n+a\r\n:1\r\n.\r\n",
	"large aggregates": "*1000\r\n" + strings.Repeat(":1\r\n", 1000),
}

func decode(text string) *decoder {
	return &decoder{r: bufio.NewReader(strings.NewReader(text))}
}

func TestValuesKeepTheirBytes(t *testing.T) {
	for name, text := range values {
		t.Run(name, func(t *testing.T) {
			d := decode(text + "+next\r\n")
			if _, raw, err := d.next(); err != nil || string(raw) != text {
				t.Errorf("got %q, %v", raw, err)
			}
			if v, _, err := d.next(); err != nil || v.text != "next" {
				t.Errorf("then %q, %v", v.text, err)
			}
			if _, _, err := d.next(); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

func TestValuesAreUnderstood(t *testing.T) {
	v, _, err := decode("|1\r\n+a\r\n+b\r\n>2\r\n$2\r\nch\r\n$?\r\n;2\r\nxy\r\n;0\r\n").next()
	if err != nil || v.typ != '>' || first(v) != "ch" || v.elems[1].text != "xy" {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestNotRESP(t *testing.T) {
	for _, text := range []string{"HTTP/1.1 200\r\n", "$x\r\n", "*-2\r\n", "$9999999999\r\n", "$?\r\nx\r\n", "\r\n"} {
		if _, _, err := decode(text).next(); !errors.Is(err, errProtocol) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string]string{
		"*2\r\n$3\r\nGET\r\n$3\r\na b\r\n": "GET|a b",
		"PING  x\r\n":                      "PING|x",
		"\r\n":                             "",
		"*0\r\n":                           "",
	} {
		cmd, raw, err := decode(text).command()
		if err != nil || strings.Join(cmd, "|") != want || string(raw) != text {
			t.Errorf("%q: %q, %q, %v", text, cmd, raw, err)
		}
	}
}

// FuzzDecoder checks that whatever is accepted is passed on byte by byte.
func FuzzDecoder(f *testing.F) {
	for _, text := range values {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		d := &decoder{r: bufio.NewReader(bytes.NewReader(in))}
		var out []byte
		for {
			_, raw, err := d.next()
			out = append(out, raw...)
			if err != nil {
				break
			}
		}
		if !bytes.HasPrefix(in, bytes.TrimRight(out, "\x00")) {
			t.Errorf("in %q, out %q", in, out)
		}
	})
}
