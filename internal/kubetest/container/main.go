// Command container is what a pod runs in the tests besides tokgate. Its first argument chooses.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	switch os.Args[1] {
	case "pause": // holds the namespaces of a pod
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
		<-end
	case "eat": // takes memory until the kernel stops it
		fmt.Println("loading the weights")
		for kept := [][]byte{}; ; time.Sleep(10 * time.Millisecond) {
			kept = append(kept, make([]byte, 4<<20))
			for i, last := 0, kept[len(kept)-1]; i < len(last); i += 4096 {
				last[i] = 1
			}
		}
	case "fail": // ends like a server that cannot start
		fmt.Println("no such model")
		os.Exit(3)
	case "hang": // never serves, and does not end when it is asked to
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("waiting for the other ranks")
		time.Sleep(24 * time.Hour)
	}
}
