package redis

import (
	"context"
	"time"

	"relock/internal/kind"
	"relock/internal/script"
)

// Extended is what became of an extension.
type Extended struct {
	Alive  bool          // what it extends is held
	Sent   time.Duration // when the attempt was sent that was answered, by Sender.Clock
	Doubts uint32        // Sender.Doubts then
	Late   bool          // a copy of it may arrive late
	Voided bool          // Redis has taken note of Op.Void
	Err    error         // the client's
}

// Extend sends an extension until it is answered, refused for good, or ctx ends.
//
// While a slot of a Cluster moves, a script may only ask for keys that are all there or all
// gone, and the key that remembers late commands is seldom there. An extension that only
// moves the end away can do without.
func (s *Sender) Extend(ctx context.Context, p kind.Leased, op *kind.Op) (r Extended) {
	cmd, named := p.Extend(op), true
	try := func() (alive int64, err error) {
		r.Sent, r.Doubts = s.Clock(), s.Doubts()
		return s.Run(ctx, cmd).AsInt64()
	}
	attempt := func() error {
		alive, err := try()
		if script.IsTryAgain(err) && named && len(op.Void) == 0 {
			plain := *op
			plain.ID, plain.Void, plain.Away, plain.FewestKeys = "", nil, true, true
			cmd, named = p.Extend(&plain), false
			alive, err = try()
		}
		r.Late = r.Late || named && err != nil && script.Classify(err) == script.Unknown
		r.Alive, r.Voided = alive == 1, named && alive == 1
		return err
	}
	r.Err = again(ctx, attempt(), attempt)
	return r
}
