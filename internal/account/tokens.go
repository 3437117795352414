package account

// Tokens are the fencing tokens that are reserved for a claim. The zero value has none.
type Tokens struct {
	next     int64 // the next one to be given out
	left     int
	reserved int // the least number that an attempt ever asked for
}

// Reserving notes that an attempt will ask for n tokens, and returns n.
func (t *Tokens) Reserving(n int) int {
	if t.reserved == 0 || n < t.reserved {
		t.reserved = n
	}
	return n
}

// Asked returns the least number that an attempt ever asked for; 0: none did.
func (t *Tokens) Asked() int { return t.reserved }

// Exactly notes that the next grant carries n tokens: earlier requests do not count.
func (t *Tokens) Exactly(n int) { t.reserved = n }

// Reserved notes the highest token that Redis has reserved; 0: none. Of those below it the claim surely
// has as many as the least number that was asked for.
func (t *Tokens) Reserved(highest int64) {
	if highest > 0 {
		t.left = max(t.reserved, 1)
		t.next = highest - int64(t.left) + 1
	}
}

// HasToken reports whether a token is left.
func (t *Tokens) HasToken() bool { return t.left > 0 }

// Draw gives out the next token; 0 if there is none.
func (t *Tokens) Draw() int64 {
	if t.left == 0 {
		return 0
	}
	t.left--
	t.next++
	return t.next - 1
}
