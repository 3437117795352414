package engine

import (
	"time"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// The window of the external tests into the package.

// A RenewalItem is one question of a RenewalRound.
type RenewalItem = renewalItem

// A RenewalRound is a round with questions that are in no lock's account.
type RenewalRound struct{ renewalRound }

// NewRenewalRound returns an empty round, of calls for so many elements of a reply.
func NewRenewalRound(most int) *RenewalRound { return &RenewalRound{renewalRound{most: most}} }

// Add adds a question.
func (r *RenewalRound) Add(item *RenewalItem, lease time.Duration, slot int, part script.Command) {
	r.add(item, lease, slot, part)
}

// A RenewalAnswer is what the answer to one call says.
type RenewalAnswer struct {
	Items    []*RenewalItem
	Alive    []int64
	Err      error
	OneByOne bool
}

// Send sends the round.
func (r *RenewalRound) Send(send func([]script.Command) []rueidis.RedisResult) (answers []RenewalAnswer) {
	for _, a := range r.send(send) {
		answers = append(answers, RenewalAnswer{a.items, a.alive, a.err, a.oneByOne()})
	}
	return answers
}
