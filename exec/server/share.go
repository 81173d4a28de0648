package server

import (
	"fmt"
	"hash/fnv"

	"github.com/tokgate/tokgate/exec"
	"github.com/tokgate/tokgate/exec/prompt"
	"github.com/tokgate/tokgate/plan"
)

// prefixOf returns the prefix that a prompt of the workload w shares with other prompts. The zero
// Prefix means no shared prefix.
func prefixOf(w *plan.Workload, salt uint64, id exec.PromptID) prompt.Prefix {
	s := w.Prompt.Shared
	switch {
	case s.Groups == 0:
		return prompt.Prefix{}
	case id.Phase == exec.Warm:
		return prompt.Prefix{Group: id.Order, Tokens: s.Tokens, More: s.More}
	}
	round := hashOf("%x %s %s %d %d %s", salt, w.Address(), id.Level, id.Seed, id.Round, id.Phase)
	group, tokens := s.Of(hashOf("%x %d", round, id.Order), round, id.Order)
	return prompt.Prefix{Group: group, Tokens: s.Tokens, More: tokens - s.Tokens}
}

func hashOf(format string, args ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, format, args...)
	x := h.Sum64()
	// Mix the bits, as in the last step of SplitMix64. Without this, the low bits of the FNV hash
	// depend too much on the last byte.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
