// Package sensitivity says how much of each resource a workload needs: from runs
// with all of it and runs with less, one resource at a time, which amounts are
// enough, which are too little, and which runs would decide. It is pure.
package sensitivity
