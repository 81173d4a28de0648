package record

// ReadFrom is Read without the disk.
var ReadFrom = read
