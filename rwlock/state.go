package rwlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// decodeState reads the reply of state.lua: the mode, the TTL, then owners and their counts of one
// side each.
func decodeState(r rueidis.RedisResult) (State, error) {
	reply, err := r.ToArray()
	if err != nil {
		return State{}, err
	}
	if len(reply) < 2 || len(reply)%2 != 0 {
		return State{}, fmt.Errorf("%w: %d elements", script.ErrShape, len(reply))
	}
	mode, err1 := reply[0].ToString()
	ttl, err2 := reply[1].AsInt64()
	if err := errors.Join(err1, err2); err != nil {
		return State{}, fmt.Errorf("%w: %w", script.ErrShape, err)
	}
	st := State{Mode: mode, Owners: make(map[string]int, len(reply)/2-1)}
	if ttl > 0 {
		st.TTL = time.Duration(ttl) * time.Millisecond
	}
	for i := 2; i < len(reply); i += 2 {
		owner, err1 := reply[i].ToString()
		holds, err2 := reply[i+1].AsInt64()
		if err := errors.Join(err1, err2); err != nil {
			return State{}, fmt.Errorf("%w: %w", script.ErrShape, err)
		}
		st.Owners[owner] += int(holds)
	}
	return st, nil
}
