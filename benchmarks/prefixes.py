"""`python -m benchmarks.prefixes`: training on eight completions of one prompt against eight prompts of their own."""

from benchmarks import celerity_alone, options
from benchmarks.model import bundled_model, license_text
from benchmarks.workloads import Writer

if __name__ == "__main__":
    celerity_alone.measure("prefixes", Writer(license_text(bundled_model())).groups(), options.parse(__doc__))
