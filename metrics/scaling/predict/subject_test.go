package predict

func init() {
	subject = func(s *drawn, workers int, batch float64) (value, low, high float64, ok bool) {
		study := Study{Layout: Layout{Replica: s.replica, Stages: int(s.stages), Virtual: int(s.virtual), Micro: s.micro}}
		for _, c := range s.counts {
			study.Counts = append(study.Counts, Count{Workers: c.workers, Nodes: c.nodes, Batch: c.batch, Steps: c.steps})
		}
		if s.told {
			study.RackSize = s.rackSize
		}
		l, err := Fit(study, 0.95)
		if err != nil {
			return 0, 0, 0, false
		}
		p, err := l.Predict(workers, batch)
		return p.Value, p.Low, p.High, err == nil
	}
}
