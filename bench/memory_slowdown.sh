#!/usr/bin/env bash
# Slow-down under a budget: what `stint plan` expects beside what a step takes, for budgets
# from the smallest to one that nothing has to be done for.
#   bench/memory_slowdown.sh DATA [STINT] [RECIPE] [ERROR] [BUDGETS] [STEPS] [ARGUMENT...]
# DATA: a folder with CIFAR-10's train.tar. Times are medians over the steps but the first
# two; run it on a machine that does nothing else. The last line: how far apart the two are.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:?usage: bench/memory_slowdown.sh DATA [STINT] [RECIPE] [ERROR] [BUDGETS] [STEPS] [ARGUMENT...]}
stint=${2:-build/release/stint} recipe=${3:-recipes/cifar10-resnet20.ini} error=${4:-0}
budgets=${5:-7} steps=${6:-10}
if [ $# -gt 6 ]; then shift 6; else set -- --shards 1; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/data" # without the test images, whose evaluation would take the time
ln -s "$(realpath "$data")/train.tar" "$work/data/train.tar"
"${PYTHON:-/usr/bin/python3}" - "$work" "$stint" "$recipe" "$error" "$budgets" "$steps" "$@" <<'PY'
import json, statistics, subprocess, sys

work, stint, recipe, error = sys.argv[1:5]
budgets, steps, more = int(sys.argv[5]), int(sys.argv[6]), sys.argv[7:]
common = [recipe, "--data", work + "/data", "--error", error, "-j", "2", "--json", "--quiet", *more]


def run(command, *arguments):
    return json.loads(subprocess.run([stint, command, *common, *arguments], check=True,
                                     capture_output=True, text=True).stdout)


def step_seconds(budget):
    budget = ["--memory", str(budget)] if budget else []
    result = run("train", *budget, "--out", work + "/run", "--force", "--steps", str(steps),
                 "--set", "train.eval_every=0", "--set", "run.log_every=1")
    with open(work + "/run/log.jsonl") as log:
        lines = [json.loads(line) for line in log]
    rates = [line["images_per_s"] for line in lines if line["event"] == "step"]
    return result["batch"] / statistics.median(rates[2:]), result["peak_rss_bytes"]


plain = run("plan")
high, low = plain["peak_bytes"], plain["smallest_bytes"]
base, _ = step_seconds(0)
print(f"{recipe} {' '.join(more)}, --error {error}: {base * 1e3:.0f} ms a step without a budget")
print(f"{'budget MiB':>11}{'peak MiB':>10}{'expected':>10}{'measured':>10}")
apart = []
for i in range(budgets):
    budget = int(low + (high - low) * i / max(budgets - 1, 1))
    expected = run("plan", "--memory", str(budget))["slowdown"]
    seconds, peak = step_seconds(budget)
    apart.append(abs(expected / (seconds / base) - 1))
    print(f"{budget / 2**20:11.1f}{peak / 2**20:10.1f}{expected:10.2f}{seconds / base:10.2f}")
print(f"expected and measured differ by {100 * statistics.mean(apart):.0f} % on average, "
      f"{100 * max(apart):.0f} % at most")
PY
