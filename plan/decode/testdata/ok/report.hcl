report {
  title        = "Chat on one H200"
  subtitle     = "What the upgrade of October brings"
  organization = "Platform team"
  logo         = "certs/logo.png"
  notes        = ["Prompts are synthetic.", "No prompt cache was used."]
}

server "mine" {
  for_each = { old = 1, new = 2, newer = 3 }
  title    = "vLLM, ${each.key}"
  simulator {
    seed = each.value
  }
}

workload "chat" {
  title             = "Chat with documents"
  preset            = "rag"
  users_per_request = [3, 6]
  load {
    concurrency = [1, 8]
    title       = { 8 = "Lunch hour" }
    description = { 8 = "Everyone is back and asks at once." }
  }
}

workload "talk" {
  preset = "general_chatbot" # its title, description and users
  server = [server.mine["old"]]
  load {
    concurrency = 1
  }
}

compare "upgrade" {
  for_each  = toset(["new", "newer"])
  control   = server.mine["old"]
  candidate = server.mine[each.key]
  changed   = ["simulator"]
}
