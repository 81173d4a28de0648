locals {
  x = 1e99999 # ERROR: Number out of range
}
