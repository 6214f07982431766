"""Every benchmark in turn, each in a process of its own: ``python -m benchmarks [--quick]``."""

import argparse
import subprocess
import sys

QUICK = {
    "kernels_text": ["--scale", "0.1", "--repetitions", "3"],
    "kernels_groups": ["--scale", "0.1", "--repetitions", "3"],
    "read_logs": ["--scale", "0.2", "--repetitions", "3"],
    "growth": ["--most", "100000"],
    "embedding": ["--quick"],
    "embedding_growth": ["--quick"],
    "embedding_cores": ["--quick"],
    "vector_store": ["--quick"],
    "end_to_end": ["--quick"],
    "group_travel": ["--quick"],
    "preference_shift": ["--quick"],
    "ngram_extraction": ["--quick"],
    "guest_simulation": ["--quick"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: minutes, not hours")
    options = parser.parse_args()
    failed = []
    for module, arguments in QUICK.items():
        print(f"\n== benchmarks.{module} ==", flush=True)
        words = [sys.executable, "-m", f"benchmarks.{module}"]
        if subprocess.run(words + (arguments if options.quick else []), check=False).returncode:
            failed.append(module)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
