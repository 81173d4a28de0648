package exec

import (
	"fmt"

	"github.com/tokgate/tokgate/exec/client"
	"github.com/tokgate/tokgate/exec/load"
	"github.com/tokgate/tokgate/metric"
)

// maxReady bounds the prompts made beforehand, in bytes; what comes after them
// is made when it is due.
const maxReady = 64 << 20

// prepare makes n prompts of a phase, so that making them delays nobody.
func (rd *round) prepare(phase metric.Phase, from, n int) {
	if rd.ready == nil {
		rd.ready = map[turnID]client.Prompt{}
	}
	for order := from; order < from+n && rd.readyBytes < maxReady && rd.check() && !rd.halted(); order++ {
		if !rd.wants(phase, order) {
			continue
		}
		p := rd.prompt(phase, order)
		rd.ready[turnID{phase, order}] = p
		rd.readyBytes += promptBytes(p)
	}
}

// wants says whether a prompt is still to be made: it is not there yet, and there is such
// a request.
func (rd *round) wants(phase metric.Phase, order int) bool {
	_, ok := rd.ready[turnID{phase, order}]
	if rd.replay != nil && rd.replay.Index(phase, order) < 0 {
		return false
	}
	return !ok && (phase != metric.Measured || order < rd.out.Due || rd.out.Time != 0)
}

func promptBytes(p client.Prompt) int { return len(p.Text) + 8*len(p.IDs) }

// ahead makes the prompt that will be wanted when every slot has taken another
// one of the phase, once nothing more urgent is to be done.
func (rd *round) ahead(turn load.Turn) {
	rd.Clock.Post(func() {
		if rd.loop != nil && !rd.halted() && !rd.loop.Over() {
			rd.prepare(turn.Phase, turn.Order+rd.level.N, 1)
		}
	})
}

// prompt makes one prompt, or cuts the round.
func (rd *round) prompt(phase metric.Phase, order int) client.Prompt {
	id := turnID{phase, order}
	if p, ok := rd.ready[id]; ok {
		delete(rd.ready, id)
		rd.readyBytes -= promptBytes(p)
		return p
	}
	l, nth := rd.of(phase, order)
	made := PromptID{Level: rd.level.Name, Seed: rd.out.Seed, Round: rd.out.Index, Phase: phase, Order: nth, First: l.first, Longer: rd.before[id]}
	if rd.replay != nil {
		made.Recorded = rd.replay.recorded(phase, order)
	}
	p, err := l.prompts.Prompt(made)
	if err != nil {
		rd.cut(rd.secrets.Text(fmt.Sprintf("no prompt could be made: %v", err)))
	}
	if made.Recorded != nil && err == nil {
		p = rd.replay.fitted(p, made.Recorded)
	}
	if before := rd.before[id]; before > 0 && p.Output == 0 {
		p.Output = l.lengths.At(phase, nth) - before
	}
	return p
}
