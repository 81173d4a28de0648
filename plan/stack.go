package plan

import (
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Stack is a server that commands of the plan start and end, such as a Helm chart.
type Stack struct {
	Up       []string          `plan:"up"`      // starts the server, and ends when that is done
	Down     []string          `plan:"down"`    // ends the server, also one that was started in part
	Logs     []string          `plan:"logs"`    // prints the server's log until it is ended; nil: the log is what Up prints
	URL      string            `plan:"url"`     // base URL of the server
	APIKey   string            `plan:"api_key"` // "" sends none
	Dir      string            `plan:"dir"`     // working folder of the commands, resolved against the plan's folder
	Folder   string            // Dir as the plan writes it; "" if it does not
	Env      map[string]string `plan:"env"`
	Timeout  time.Duration     `plan:"timeout"`   // of Up, and of Down; above 0
	Declares map[string]string `plan:"declares"`  // what the plan says of the server that no page of it does
	ServedAs string            `plan:"served_as"` // model id in requests; "" takes the id that /v1/models lists
	Range    hcl.Range
}
