variable "x" { # ERROR: Invalid variable file
}
