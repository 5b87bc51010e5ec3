package sensitivity

import "testing"

// Training needs 4 CPUs, preprocessing 8 GiB: a is enough for the training, b for
// the preprocessing, c and d for both; d is larger and cheaper.
func TestCommon(t *testing.T) {
	machine := func(name string, vcpus, gib, hour float64) Machine {
		return Machine{Name: name, VCPUs: vcpus, Bytes: gib * (1 << 30), Hour: hour}
	}
	a, b, c, d := machine("a", 4, 4, 0.1), machine("b", 2, 8, 0.1), machine("c", 4, 8, 0.3), machine("d", 8, 8, 0.2)
	market := func(enough ...Machine) (m Market) {
		for _, one := range enough {
			m.Offers = append(m.Offers, Offer{Machine: one, Verdict: Enough})
		}
		m.Offers = append(m.Offers, Offer{Machine: machine("e", 1, 1, 0.01), Verdict: Undecided})
		return m
	}
	name := func(m *Machine) string {
		if m == nil {
			return "none"
		}
		return m.Name
	}
	dear := c
	dear.Hour = 0.4
	only := d
	only.Only = map[string]any{"variant": "nvme"}
	for _, test := range []struct {
		markets            []Market
		smallest, cheapest string
	}{
		{[]Market{market(a, c, d), market(b, c, d)}, "c", "d"},
		{[]Market{market(a, c, d), market(b, d)}, "d", "d"},
		{[]Market{market(a), market(b)}, "none", "none"},
		{[]Market{market(a, c), market(b, dear)}, "none", "none"}, // another price
		{[]Market{market(only), market(d)}, "none", "none"},       // another condition
		{[]Market{market(b)}, "b", "b"},
		{nil, "none", "none"},
	} {
		if s, ch := Common(test.markets); name(s) != test.smallest || name(ch) != test.cheapest {
			t.Errorf("%s, %s; want %s, %s", name(s), name(ch), test.smallest, test.cheapest)
		}
	}
}
