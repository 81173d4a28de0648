include = "lib/included.hcl" # ERROR: Invalid include
