package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"relock/relocktest"
	"relock/rlock"
)

// shop is a service whose methods lock for themselves, and call each other.
type shop struct {
	session *rlock.Session
	stock   map[string]int
}

func (s *shop) sell(ctx context.Context, article string) error {
	return rlock.New(s.session, "stock:"+article).Do(ctx, func(ctx context.Context) error {
		s.stock[article]--
		return s.audit(ctx, article) // ctx carries the owner, so that audit enters at once
	}, rlock.Wait(2*time.Second))
}

func (s *shop) audit(ctx context.Context, article string) error {
	return rlock.New(s.session, "stock:"+article).Do(ctx, func(context.Context) error {
		if s.stock[article] < 0 {
			return errors.New("sold too many of " + article)
		}
		return nil
	})
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := s.sell(r.Context(), r.URL.Query().Get("article"))
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, rlock.ErrUnavailable), errors.Is(err, rlock.ErrClosed): // before ErrNotAcquired
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	case errors.Is(err, rlock.ErrNotAcquired):
		http.Error(w, "busy, try again", http.StatusConflict)
	default: // the work failed, or the lock was lost
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// Nested calls in an HTTP service: the request's context leads from lock to lock.
func Example_nestedCalls() {
	session, _, done := relocktest.Open()
	defer done()
	s := &shop{session: session, stock: map[string]int{"tea": 1}}

	for range 2 {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/sell?article=tea", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 204
	// 500
}
