package multilock

// DeploymentSource is the Lua of the script, for the external tests.
var DeploymentSource = deploymentScript.Source()
