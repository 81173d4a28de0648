package record

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tokgate/tokgate/metric"
)

// possible returns an error if the record of a request is impossible. All times come from one
// monotonic clock. So they must be in order, and the gaps between tokens must add up. Values from
// the server are not checked.
func possible(s *metric.Sample) error {
	if s.Round < 0 || s.Slot < 0 || s.Order < 0 {
		return errors.New("its place in the round is negative")
	}
	last, after := time.Duration(0), "the run began"
	for _, stamp := range []struct {
		at   time.Duration
		what string
	}{
		{s.Scheduled, "it was due"},
		{s.Sent, "it was sent"},
		{s.Headers, "its headers came"},
		{s.First, "its first token came"},
		{s.FirstAnswer, "its answer began"},
		{s.Last, "its last token came"},
		{s.End, "it ended"},
	} {
		if stamp.at == 0 {
			continue // zero means that the time was not recorded
		}
		if stamp.at < last {
			return fmt.Errorf("%s before %s", stamp.what, after)
		}
		last, after = stamp.at, stamp.what
	}
	if s.End == 0 && last > 0 {
		return errors.New("it has no end")
	}
	if err := cmp.Or(possibleChunks(s), possibleWait(s)); err != nil {
		return err
	}
	ok := s.Status >= 200 && s.Status < 300
	switch {
	case s.Failure == nil && (!ok || s.Vectors == 0 && (s.Chunks == 0 || s.Finish == "")):
		return fmt.Errorf("it completed with status %d, %d chunks and finish reason %q", s.Status, s.Chunks, s.Finish)
	case s.Failure != nil && s.Failure.Kind == metric.FailStatus && ok:
		return fmt.Errorf("it failed by its status, which is %d", s.Status)
	}
	return nil
}

func possibleWait(s *metric.Sample) error {
	if s.RetryAfter < 0 || s.RetryAfter > metric.MaxRetryAfter || s.RetryAfter > 0 && s.Failure == nil {
		return fmt.Errorf("it was asked to wait for %v", s.RetryAfter)
	}
	return nil
}

// possibleChunks returns an error if the gaps do not agree with the timestamps. Each gap is rounded
// up to a microsecond, so the sum of n gaps may be up to n microseconds too long. Embeddings came whole.
func possibleChunks(s *metric.Sample) error {
	if s.Vectors != 0 {
		if s.Vectors < 0 || s.Chunks != 0 || len(s.Gaps) != 0 || s.First == 0 || s.First != s.Last {
			return fmt.Errorf("it has %d embeddings, and %d chunks of text", s.Vectors, s.Chunks)
		}
		return nil
	}
	if (s.Chunks > 0) != (s.First > 0 && s.Last > 0) || len(s.Gaps) != max(s.Chunks-1, 0) {
		return fmt.Errorf("it has %d chunks and %d gaps between them", s.Chunks, len(s.Gaps))
	}
	var sum time.Duration
	for _, gap := range s.Gaps {
		if gap == 1<<32-1 {
			return nil // this largest number also stands for every longer gap
		}
		sum += time.Duration(gap) * time.Microsecond
	}
	if over := sum - (s.Last - s.First); over < 0 || over > time.Duration(len(s.Gaps))*time.Microsecond {
		return fmt.Errorf("its gaps add up to %v, and its tokens came over %v", sum, s.Last-s.First)
	}
	return nil
}

func possibleRound(r *metric.Round, measured tally) error {
	if r.Index < 0 || r.Due < 0 {
		return errors.New("its place or size is negative")
	}
	if r.Busy < 0 || r.Busy > 1 {
		return errors.New("its busy share is out of range")
	}
	if err := r.Health.Possible(); err != nil {
		return err
	}
	if r.WindowStart > r.WindowEnd {
		return errors.New("its window ends before it begins")
	}
	if r.Complete && measured.n < r.Due {
		return fmt.Errorf("it is complete with %d of %d requests", measured.n, r.Due)
	}
	if measured.n > 0 && (r.Start != measured.start || r.End != measured.end) {
		return errors.New("its beginning or end is not that of its requests")
	}
	return nil
}
