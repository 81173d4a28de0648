package sim

// words are what answers are made of: one token each, with the space.
var words = [64]string{
	" the", " and", " you", " can", " see", " how", " our", " own", " new", " set", " run", " one", " two", " ten", " few", " may",
	" lot", " bit", " way", " day", " sun", " sky", " sea", " air", " cat", " dog", " fox", " owl", " bee", " ant", " cow", " hen",
	" red", " big", " old", " hot", " icy", " dry", " wet", " odd", " put", " get", " let", " say", " ask", " try", " use", " fix",
	" cut", " dig", " fly", " hop", " jog", " mix", " nod", " pay", " row", " sip", " tap", " win", " yes", " not", " but", " for",
}

const opening = "The" // the first word, one token too

// answer is the text of an answer: token i is a function of seed and i.
type answer struct{ seed rng }

// append appends the text of tokens from to to (exclusive).
func (a answer) append(b []byte, from, to int) []byte {
	for i := from; i < to; i++ {
		if i == 0 {
			b = append(b, opening...)
			continue
		}
		r := a.seed + rng(i)
		b = append(b, words[r.next()>>58]...)
	}
	return b
}

// size is how many bytes the first n tokens have.
func (a answer) size(n int) int {
	if n == 0 {
		return 0
	}
	return len(opening) + (n-1)*len(words[0])
}
