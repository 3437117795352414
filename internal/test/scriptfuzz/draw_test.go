package scriptfuzz

import "strconv"

// A draw makes choices of bytes, one after the other; when there are none left each choice is the first.
type draw struct{ rest []byte }

// n returns a number below k, which is at most 256.
func (d *draw) n(k int) int {
	if len(d.rest) == 0 {
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return int(b) % k
}

// once in k reports whether it is the one time of k.
func (d *draw) once(k int) bool { return d.n(k) == k-1 }

// of returns one of some.
func (d *draw) of(some ...string) string { return some[d.n(len(some))] }

// some returns each of all or not, in their order.
func (d *draw) some(all ...string) (picked []string) {
	for _, s := range all {
		if d.n(2) == 1 {
			picked = append(picked, s)
		}
	}
	return picked
}

// flag returns 0 or 1.
func (d *draw) flag() string { return strconv.Itoa(d.n(2)) }

// some2 returns each of some pairs or not.
func (d *draw) some2(pairs ...string) (picked []string) {
	for i := 0; i < len(pairs); i += 2 {
		if d.n(4) > 0 {
			picked = append(picked, pairs[i], pairs[i+1])
		}
	}
	return picked
}
