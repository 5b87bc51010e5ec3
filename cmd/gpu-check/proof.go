package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/world"
)

// prove starts ranks on this host that run collective operations and check every
// result. It returns what each rank reports. Each rank has its own GPU, or all share
// the only one. every are arguments for all ranks, last are further arguments for
// the last rank.
func (c *checker) prove(ctx context.Context, ranks int, every []string, last ...string) ([]gpucheck.Proof, error) {
	loopback := net.IPv4(127, 0, 0, 1)
	port, err := world.FreePort(loopback)
	if err != nil {
		return nil, err
	}
	list, errs := make([]gpucheck.Proof, ranks), make([]error, ranks)
	nonce := gpucheck.NonceVariable + "=" + rand.Text()
	done := make(chan struct{})
	for r := range ranks {
		w := world.World{Rank: r, Size: ranks, LocalRank: r, LocalSize: ranks, Nodes: 1, Address: loopback.String(), Port: port}
		environment := append(w.Environ(), nonce)
		if *c.facts.Devices < ranks {
			environment = append(environment, "SCALEBENCH_SHARE_GPU=1")
		}
		args := append([]string{"nccl"}, every...)
		if r == ranks-1 {
			args = append(args, last...)
		}
		go func() {
			defer func() { done <- struct{}{} }()
			text, err := c.start(ctx, environment, c.Worker, args...)
			if err == nil {
				err = json.Unmarshal(text, &list[r])
			}
			if err != nil {
				errs[r] = fmt.Errorf("rank %d of %d: %w", r, ranks, err)
			}
		}()
	}
	for range ranks {
		<-done
	}
	return list, errors.Join(errs...)
}

// perturbed is the number of the result in which --perturb changes a bit. It is
// about in the middle.
const perturbed = 100

func (c *checker) correctness(ctx context.Context, o *outcome) error {
	var last []string
	if c.Perturb {
		last = []string{"--perturb", fmt.Sprint(perturbed)}
	}
	list, err := c.prove(ctx, c.ranks, nil, last...)
	if err != nil {
		return err
	}
	for r, p := range list {
		if p.Checks != p.Expected || p.Checks == 0 {
			return fmt.Errorf("rank %d compared %d of %d results", r, p.Checks, p.Expected)
		}
		if len(p.Wrong) > 0 {
			said := []string{fmt.Sprintf("rank %d has wrong results", r)}
			for _, d := range p.Wrong {
				said = append(said, d.String())
			}
			return &checkError{gpucheck.Failure{Said: said, Differences: p.Wrong}}
		}
	}
	where := "each on its GPU"
	if c.shared() {
		where, o.Mark = "sharing one GPU", notPerformance
	}
	o.Found = []string{fmt.Sprintf("%d ranks, %s: %d results on each, bit for bit: all-reduce and reduce-scatter (sum, prod, max, min, avg), all-gather, broadcast; 10 types; in place and out of place", c.ranks, where, list[0].Checks)}
	return nil
}

// canFail runs the same collectives with one changed bit on one rank. It passes if
// exactly that rank reports the difference.
func (c *checker) canFail(ctx context.Context, o *outcome) error {
	list, err := c.prove(ctx, c.ranks, nil, "--perturb", fmt.Sprint(perturbed))
	if err != nil {
		return err
	}
	for r, p := range list {
		want := 0
		if r == c.ranks-1 {
			want = 1
		}
		if len(p.Wrong) != want {
			return fmt.Errorf("rank %d found %d wrong results, expected %d; the correctness check proves nothing", r, len(p.Wrong), want)
		}
	}
	o.Found = []string{fmt.Sprintf("one bit of result %d, flipped on rank %d: noticed on that rank only (%s)", perturbed, c.ranks-1, list[c.ranks-1].Wrong[0].What)}
	return nil
}

func (c *checker) overhead(ctx context.Context, o *outcome) error {
	list, err := c.prove(ctx, 1, []string{"--costs"})
	if err != nil {
		return err
	}
	o.Found = []string{"| call, on the host | median | fastest | 99 % | calls |", "|---|---|---|---|---|"}
	for _, cost := range list[0].Costs {
		if cost.Median <= 0 {
			return fmt.Errorf("%s: the median time is %v ns; want more than 0", cost.Call, cost.Median)
		}
		o.Found = append(o.Found, fmt.Sprintf("| %s | %.0f ns | %.0f ns | %.0f ns | %d |", cost.Call, cost.Median, cost.Min, cost.P99, cost.Calls))
	}
	if len(list[0].Costs) == 0 {
		return errors.New("no call was timed")
	}
	return nil
}
