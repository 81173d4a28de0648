include = ["../includes.hcl"] # ERROR: Include cycle
