package exec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/shape"
)

// inSession gives the request r of the turn t the header by which a gateway knows its conversation,
// if the server has one. All turns of a conversation have the same value, also those of a recorded
// session; a request without a conversation has a value of its own. The value says nothing but
// that, and differs in each round of each run.
func (rd *round) inSession(r *client.Request, t shape.Due) {
	name := rd.target.SessionHeader
	if name == "" {
		return
	}
	of := fmt.Sprint(t.Phase, " ", t.Batch, " ", t.Order)
	if t.Chat != nil {
		of = fmt.Sprint(t.Chat.Phase, " chat ", t.Chat.Number)
	} else if rd.replay != nil {
		if _, row := rd.replay.Row(t.Phase, t.Order); row.Session > 0 {
			of = fmt.Sprint("session ", row.Session)
		}
	}
	sum := sha256.Sum256(append(rd.secret[:], of...))
	r.Headers = maps.Clone(r.Headers)
	if r.Headers == nil {
		r.Headers = map[string]string{}
	}
	r.Headers[http.CanonicalHeaderKey(name)] = hex.EncodeToString(sum[:16])
}
