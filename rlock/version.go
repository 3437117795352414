package rlock

// Version is the version of this module, by Semantic Versioning. Each session writes it to Redis beside
// its Label, where relock show finds it.
const Version = "0.1.0"
