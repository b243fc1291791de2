"""What Celerity's speed is measured with; `make bench` runs all of it, docs/performance.md tells what came out."""
