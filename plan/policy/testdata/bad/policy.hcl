allow {
  server  = ["container"] # ERROR: Unsupported argument
  servers = ["conatiner"] # ERROR: Unknown choice
  images  = [1]           # ERROR: Wrong type
  env     = [env.NAMES]   # ERROR: Reference not available here
  stacks  = ["helm", [1]] # ERROR: Wrong type # ERROR: Wrong type
}

require {
  decide = ["certain"] # ERROR: Unknown choice
}

gate { # ERROR: Unsupported block type
}
