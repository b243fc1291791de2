import json

from benchmarks.workloads import Writer, from_json, ragged_lengths, to_json

TEXT = list(range(1000))


def test_the_training_batch_is_ragged_and_has_the_tokens_it_says() -> None:
    lengths = ragged_lengths()
    assert len(lengths) == 32
    assert (min(lengths), max(lengths), sum(lengths)) == (64, 256, 4910)
    assert lengths not in (sorted(lengths), sorted(lengths, reverse=True))


def test_a_rollout_has_prompts_and_budgets_over_their_whole_ranges() -> None:
    rollout = Writer(TEXT).rollout()
    assert [len(request.prompt) for request in rollout.requests] == [16, 32, 48, 64, 80, 96, 112, 128]
    assert sorted(request.max_tokens for request in rollout.requests) == [8, 16, 24, 32, 40, 48, 56, 64]
    assert rollout.sequences == 64
    assert rollout.tokens == 8 * (8 + 16 + 24 + 32 + 40 + 48 + 56 + 64)


def test_the_same_seed_writes_the_same_work() -> None:
    assert Writer(TEXT).rollout() == Writer(TEXT).rollout() != Writer(TEXT, seed=1).rollout()


def test_a_group_shares_its_prompt_and_nothing_else_and_costs_the_same_tokens_without() -> None:
    shared, own = Writer(TEXT).groups()
    prompts = {tuple(sample.tokens[:256]) for sample in shared.samples}
    assert len(prompts) == 1
    assert len({tuple(sample.tokens[256:]) for sample in shared.samples}) == 8
    assert len({tuple(sample.tokens[:256]) for sample in own.samples}) == 8
    assert shared.tokens == own.tokens == 8 * 287
    assert {sample.trained_from for sample in shared.samples} == {255}


def test_several_sessions_get_the_work_that_one_gets() -> None:
    one, eight = (Writer(TEXT).training(ragged_lengths(), sessions=sessions) for sessions in (1, 8))
    assert [sample.tokens for sample in one.samples] == [sample.tokens for sample in eight.samples]
    assert one.sessions == [0]
    assert [len(eight.of(session)) for session in eight.sessions] == [4] * 8


def test_a_workload_reaches_another_process_unchanged() -> None:
    writer = Writer(TEXT)
    for workload in (writer.rollout(), writer.training([5, 9])):
        assert from_json(json.loads(json.dumps(to_json(workload)))) == workload
