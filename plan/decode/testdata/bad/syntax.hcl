server "s" {
  endpoint { url = "http://127.0.0.1:8000" # ERROR: One argument a line
  model = "x"
}
