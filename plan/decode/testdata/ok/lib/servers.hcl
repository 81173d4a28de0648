include = ["gate.hcl.json"]

locals {
  context = 4096
}

server "shared" {
  engine = "llama.cpp"
  process {
    command = ["llama-server", "-m", "model.gguf", "--port", "{port}"]
    dir     = "build"
  }
  flags = { ctx-size = 16384, parallel = 2, c = 7, mmap = false, temp = -1 }
}
