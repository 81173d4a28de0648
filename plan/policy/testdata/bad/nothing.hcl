# It begins here. # ERROR: Missing setting
allow {
}
