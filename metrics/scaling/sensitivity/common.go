package sensitivity

import "maps"

// Common returns the smallest and the cheapest machines that suffice for all of several
// needs; nil for none. A machine must be in all price lists at the same price.
func Common(markets []Market) (smallest, cheapest *Machine) {
	if len(markets) == 0 {
		return nil, nil
	}
	for i := range markets[0].Offers {
		m := &markets[0].Offers[i].Machine
		every := true
		for _, market := range markets {
			every = every && market.holds(m)
		}
		if !every {
			continue
		}
		if smallest == nil || m.Size(*smallest) < 0 {
			smallest = m
		}
		if cheapest == nil || m.Hour < cheapest.Hour {
			cheapest = m
		}
	}
	return smallest, cheapest
}

// holds reports whether the market has this exact machine and it suffices.
func (market *Market) holds(m *Machine) bool {
	for _, o := range market.Offers {
		if o.Verdict == Enough && o.Machine.Size(*m) == 0 && maps.Equal(o.Only, m.Only) {
			return true
		}
	}
	return false
}
