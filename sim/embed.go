package sim

import (
	"hash/fnv"
	"math"
	"time"
)

// vectorSize is the number of components of an embedding.
const vectorSize = 256

// vectorNoise is how far a component of an embedding differs from one request to the next, as a share
// of a typical component. Real engines differ so because they add up numbers in another order.
const vectorNoise = 0.001

// embeddable returns an error if the engine cannot take the inputs of a request for embeddings.
func (p *Profile) embeddable(c *Call) error {
	n := len(c.keys)
	if n == 0 || c.input < n {
		return refuse("input", "input must not be empty")
	}
	_, err := p.reply(wanted{api: embeddingsAPI, input: (c.input + n - 1) / n, max: 1, param: "input", ignoreEOS: true}, 0, nil)
	c.reply = reply{output: 1, finish: "stop", length: -1}
	return err
}

// submitInputs gives the engine a job for each input. A job ends with its prefill.
func (v *Virtual) submitInputs(c *Call) {
	n := len(c.keys)
	c.left = n
	v.submitInput(c, c.id, c.input-(n-1)*(c.input/n))
	first := c.id
	for range n - 1 {
		v.enlist(c)
		c.more = append(c.more, c.id)
		v.submitInput(c, c.id, c.input/n)
	}
	c.id = first
}

func (v *Virtual) submitInput(c *Call, id uint64, tokens int) {
	if err := v.engine.Submit(c.due, Job{ID: id, Input: tokens, Output: 1}); err != nil {
		panic(err) // cannot happen: embeddable has checked the lengths
	}
}

// embed sends the embeddings.
func (v *Virtual) embed(c *Call, at time.Duration) {
	v.head(c, at)
	chunk := Chunk{Inputs: len(c.keys)}
	if !c.fx.is("no-usage") {
		chunk.Usage = &Usage{Input: c.input, Cached: c.cached}
	}
	if c.spoken {
		chunk.Vectors = v.vectors(c)
	}
	v.send(c, at, chunk)
	v.end(c, at, Ended, "")
}

// vectors returns the embeddings of a request's inputs.
func (v *Virtual) vectors(c *Call) [][]float32 {
	out := make([][]float32, len(c.keys))
	for i, key := range c.keys {
		v.drawn++
		out[i] = vector(v.model, key, rng(v.seed)<<20^v.drawn, c.fx)
	}
	return out
}

// vector returns the model's embedding of an input, of length 1 but for the noise, for which draw is
// the seed.
func vector(model string, key uint64, draw rng, fx effect) []float32 {
	h := fnv.New64a()
	h.Write([]byte(model)) // never fails
	if fx.is("other-answer") {
		key ^= 0x07e2
	}
	of := rng(h.Sum64() ^ key)
	of.next()
	draw.next()
	noise := math.Hypot(vectorNoise, float64(fx.of("noisy-vectors").Tokens)/100)
	out := make([]float32, vectorSize)
	for i := range out {
		out[i] = float32((of.normal() + noise*draw.normal()) / math.Sqrt(vectorSize))
	}
	return out
}

// normal returns a normally distributed number, by the method of Box and Muller.
func (r *rng) normal() float64 {
	return math.Sqrt(-2*math.Log(1-r.float())) * math.Cos(2*math.Pi*r.float())
}
