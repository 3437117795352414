package clock

// A Wake is by which one goroutine that waits is woken: a channel with room for one.
type Wake chan struct{}

// Up wakes the goroutine, or lets its next wait return at once. It never blocks.
func (w Wake) Up() {
	select {
	case w <- struct{}{}:
	default: // a wake-up is pending already
	}
}
