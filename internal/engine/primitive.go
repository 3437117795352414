package engine

import "relock/internal/kind"

// The contract with the kinds of locks, by the names that the files here use.
type (
	Kind      = kind.Kind
	Primitive = kind.Primitive
	Leased    = kind.Leased
	Liner     = kind.Liner
	Position  = kind.Position
	Op        = kind.Op
)

// Memory is [kind.Memory].
const Memory = kind.Memory
