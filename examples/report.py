"""What a run leaves behind: a table on the terminal, a plot and a summary as files."""

import json
from pathlib import Path

from examples.grpo_arithmetic import Outcome
from examples.pace import is_enough


def report(outcome: Outcome, seconds: float, folder: Path) -> None:
    """Prints the mean reward of each step and the summary; writes reward.png and summary.json."""
    summary = {
        "steps": len(outcome.rewards),
        "questions": outcome.size.questions,
        "samples": outcome.size.samples,
        "reward_first": outcome.reward_first,
        "reward_last": outcome.reward_last,
        "accuracy_before": outcome.accuracy_before,
        "accuracy_after": outcome.accuracy_after,
        "seconds": seconds,
        "tokens_sampled": outcome.tokens_sampled,
        "tokens_trained": outcome.tokens_trained,
    }
    print("\n".join(f"step {step:3}  reward {reward:.3f}" for step, reward in enumerate(outcome.rewards, start=1)))
    print("\n".join(f"{name:16} {value:.4g}" for name, value in summary.items()))
    print(verdict(outcome), flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    plot(outcome.rewards, folder / "reward.png")
    print(f"plot and summary are in {folder}")


def verdict(outcome: Outcome) -> str:
    if outcome.has_risen:
        return f"The mean reward rose from {outcome.reward_first:.2f} to {outcome.reward_last:.2f}."
    if not is_enough(len(outcome.rewards) * outcome.size.questions * outcome.size.samples):
        return "The mean reward did not rise: this machine is too slow for as many steps as that takes."
    return f"The mean reward did not rise: {outcome.reward_first:.2f} at first, {outcome.reward_last:.2f} at last."


def plot(rewards: list[float], file: Path) -> None:
    import matplotlib.pyplot as plt  # takes seconds, when all else is done

    plt.plot(range(1, len(rewards) + 1), rewards, marker="o")
    plt.gca().set(xlabel="step", ylabel="mean reward", ylim=(0, 1.02), title="GRPO on one-digit sums")
    plt.savefig(file, dpi=120)
