from_file = "x" # ERROR: Invalid value for variable
from_flie = 1   # ERROR: Value for undeclared variable
constant  = var.list # ERROR: Reference not available here
