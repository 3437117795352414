package quorum

// AcquireSource is the Lua of the script, for the external tests.
var AcquireSource = acquireScript.Source()
