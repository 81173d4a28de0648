include = [
  "lib/included.hcl",
  "lib/absent.hcl", # ERROR: Plan cannot be read
  "lib/cycle.hcl",
  "../../../../../../../../../etc/passwd", # ERROR: Invalid include
  "", # ERROR: Invalid include
  upper("x"), # ERROR: Invalid include
]
