package server

import (
	"context"
	"slices"
	"time"
)

// podEvents is what a cluster reports about a pod, besides the pod itself.
type podEvents []struct {
	Reason, Message, Type string
	EventTime             time.Time
	LastTimestamp         time.Time
	Series                struct{ LastObservedTime time.Time }
	InvolvedObject        struct{ FieldPath string }
}

// events asks for the events of a pod. It needs a right that a run can do without: to list events.
func (k *kubectl) events(ctx context.Context, o *podObject) (podEvents, error) {
	var list struct{ Items podEvents }
	err := k.get(ctx, &list, "events", "--field-selector", "involvedObject.uid="+o.Metadata.UID)
	return list.Items, err
}

// at returns when the event was last seen. Which of its times are set depends on who reports it.
func (e podEvents) at(i int) time.Time {
	return slices.MaxFunc([]time.Time{e[i].EventTime, e[i].LastTimestamp, e[i].Series.LastObservedTime}, time.Time.Compare)
}

// images reports whether a node deals with the images of the pod. It then has the pod's volumes and network.
func (e podEvents) images() bool {
	for i := range e {
		if e[i].Reason == "Pulling" || e[i].Reason == "Pulled" {
			return true
		}
	}
	return false
}

// warning returns the last warning of the pod's node in Kubernetes' words; "" if there is none.
func (e podEvents) warning() string {
	last := -1
	for i := range e {
		if e[i].Type == "Warning" && e[i].Reason != "FailedScheduling" && (last < 0 || !e.at(i).Before(e.at(last))) {
			last = i
		}
	}
	if last < 0 {
		return ""
	}
	return reasoned(e[last].Reason, e[last].Message)
}

// pull returns how long the image of a container took to come; 0 if it was there, or that is not known. The
// conditions of a pod do not say: kubelets before 1.36 tell them when the pull is over. Times are whole seconds.
func (e podEvents) pull(container string) time.Duration {
	var begun, ended time.Time
	for i := range e {
		switch at := e.at(i); {
		case e[i].InvolvedObject.FieldPath != "spec.containers{"+container+"}":
		case e[i].Reason == "Pulling" && (begun.IsZero() || at.Before(begun)):
			begun = at
		case e[i].Reason == "Pulled" && at.After(ended):
			ended = at
		}
	}
	if begun.IsZero() {
		return 0
	}
	return max(ended.Sub(begun), 0)
}
