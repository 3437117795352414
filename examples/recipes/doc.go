// Package recipes is the code of docs/recipes.md and docs/testing.md. Each recipe is an Example
// or a test, on an embedded Redis. What to copy is the functions above the Examples.
//
// Recipes that need other libraries are in examples/beside, a module of its own.
package recipes
