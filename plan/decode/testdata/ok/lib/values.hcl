limit    = "5s"
url      = "http://file.example"
password = "pass-0123456789"
