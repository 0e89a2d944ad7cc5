package readiness

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// overlap says whether some set of labels satisfies both selectors. The keys of labels are independent of each other, so it does if for every
// key some value, or the key's absence, satisfies all requirements on that key. It knows the four operators of metav1.LabelSelector.
func overlap(a, b labels.Selector) bool {
	ofA, selectableA := a.Requirements()
	ofB, selectableB := b.Requirements()
	if !selectableA || !selectableB {
		return false
	}
	byKey := map[string][]labels.Requirement{}
	for _, r := range append(append([]labels.Requirement{}, ofA...), ofB...) {
		byKey[r.Key()] = append(byKey[r.Key()], r)
	}
	for _, requirements := range byKey {
		if !satisfiable(requirements) {
			return false
		}
	}
	return true
}

// satisfiable says whether a value of one key, or its absence, satisfies all requirements on it.
func satisfiable(requirements []labels.Requirement) bool {
	present, absent := false, false // the key must be
	var allowed sets.Set[string]    // nil: every value
	forbidden := sets.New[string]()
	for _, r := range requirements {
		values := sets.New(r.ValuesUnsorted()...)
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			present = true
			if allowed == nil {
				allowed = values
			} else {
				allowed = allowed.Intersection(values)
			}
		case selection.NotIn, selection.NotEquals:
			forbidden = forbidden.Union(values)
		case selection.Exists:
			present = true
		case selection.DoesNotExist:
			absent = true
		}
	}
	switch {
	case absent:
		return !present
	case allowed != nil:
		return allowed.Difference(forbidden).Len() > 0
	}
	return true // absence, or one of the infinitely many other values
}
