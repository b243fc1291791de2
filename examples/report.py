"""What a run leaves behind: a table on the terminal, a plot and a summary as files."""

import json
from pathlib import Path

import matplotlib.pyplot as plt


def report(rewards: list[float], summary: dict[str, float], folder: Path) -> None:
    """Prints the mean reward of each step and the summary; writes reward.png and summary.json."""
    print("\n".join(f"step {step:3}  reward {reward:.3f}" for step, reward in enumerate(rewards, start=1)))
    print("\n".join(f"{name:16} {value:.4g}" for name, value in summary.items()))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    plt.plot(range(1, len(rewards) + 1), rewards, marker="o")
    plt.gca().set(xlabel="step", ylabel="mean reward", ylim=(0, 1.02), title="GRPO on one-digit sums")
    plt.savefig(folder / "reward.png", dpi=120)
