"""Model resources and sessions through the SDK's resources and its high-level clients."""

import pytest
from together import BadRequestError, NotFoundError, Together
from together.post_training import ModelResourcesClient, SessionClient

from settings import load_settings
from stack.stack import Stack
from store import keys
from store.connection import connect
from store.store import open_store
from tests.together.bodies import PROMPT, supervised, tokens


def test_supported_models_state_the_servers_limits(sdk: Together) -> None:
    (model,) = [each for each in sdk.post_training.supported_models.get().data if each.base_model == "tiny"]
    (compute,) = model.compute_configs or []
    assert compute.generator_config and compute.generator_config.context_length == 512
    assert compute.trainer_config and compute.trainer_config.lora and compute.trainer_config.lora.max_rank == 256


def test_model_resources_cost_nothing_and_live_from_create_to_stop(sdk: Together) -> None:
    api = sdk.post_training.model_resources
    estimate = api.estimate_cost(base_model="tiny")
    assert (estimate.price_per_hour, estimate.currency) == (0.0, "USD")
    made = api.create(base_model="tiny", inactive_timeout=300, optimizer_config={"muon": {}})
    assert made.status == "MODEL_RESOURCES_STATUS_READY" and made.optimizer_config.muon
    assert made.expires_at and (made.expires_at - made.created_at).total_seconds() == pytest.approx(300, abs=1)
    later = api.extend_expiry(made.id, seconds=3000).expires_at
    assert later and (later - made.created_at).total_seconds() > 2999
    assert api.extend_expiry(made.id, seconds=60).expires_at == later
    first = api.list(
        limit=1, status=["MODEL_RESOURCES_STATUS_READY", "MODEL_RESOURCES_STATUS_PENDING"], created_by="me"
    )
    assert [each.id for each in first.data] == [made.id]
    assert made.id not in [each.id for each in api.list(after=made.id).data]
    assert api.stop(made.id).status == "MODEL_RESOURCES_STATUS_STOPPED"
    assert api.retrieve(made.id).expires_at is None
    assert [each.id for each in api.list(status=["MODEL_RESOURCES_STATUS_STOPPED"], limit=1).data] == [made.id]
    with pytest.raises(BadRequestError, match="stopped already"):
        api.stop(made.id)
    with pytest.raises(BadRequestError, match="stopped"):
        sdk.post_training.sessions.create(model_resources_id=made.id)


def test_resources_with_active_sessions_stop_by_force_only(base_url: str, sdk: Together) -> None:
    resources = ModelResourcesClient.create(base_url=base_url, api_key="any", base_model="tiny")
    session = resources.create_session(lora_config={"rank": 2})
    with pytest.raises(BadRequestError, match="1 sessions are active"):
        sdk.post_training.model_resources.stop(resources.model_resources_id)
    resources.stop(force=True)
    session.detach()
    while (status := sdk.post_training.sessions.retrieve(session.session_id).status).endswith("STOPPING"):
        continue
    assert status == "TRAINING_SESSION_STATUS_STOPPED"


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"base_model": "unheard-of"}, "base_model"),
        ({"base_model": "tiny", "lora_enabled": False}, "full weights"),
        ({"base_model": "tiny", "base_weights_ref": "x"}, "registry"),
        ({"base_model": "tiny", "inactive_timeout": 10}, "inactive_timeout"),
    ],
)
def test_what_is_not_offered_is_refused_by_name(sdk: Together, asked: dict[str, object], what: str) -> None:
    with pytest.raises(BadRequestError, match=what):
        sdk.post_training.model_resources.create(**asked)  # type: ignore[arg-type]


def test_labels_are_kept_changed_field_by_field_and_cleared_by_empty_strings(
    sdk: Together, resources: ModelResourcesClient
) -> None:
    api = sdk.post_training.sessions
    made = api.create(
        model_resources_id=resources.model_resources_id,
        display_name="first",
        metadata={"wandb": {"project": "p", "run_id": "r"}},
    )
    assert made.display_name == "first"
    changed = api.update(made.id, metadata={"wandb": {"run_id": "", "group": "g"}})
    assert changed.display_name == "first" and changed.metadata.wandb
    assert (changed.metadata.wandb.project, changed.metadata.wandb.run_id, changed.metadata.wandb.group) == (
        "p",
        None,
        "g",
    )
    assert api.update(made.id, display_name="").display_name is None
    assert api.stop(made.id).status in ("TRAINING_SESSION_STATUS_STOPPING", "TRAINING_SESSION_STATUS_STOPPED")


def test_lists_are_filtered_and_paged_by_cursor(sdk: Together, resources: ModelResourcesClient) -> None:
    api, home = sdk.post_training.sessions, resources.model_resources_id
    ids = [api.create(model_resources_id=home).id for _ in range(3)]
    first = api.list(model_resources_id=home, limit=2)
    assert [each.id for each in first.data or []] == ids[:0:-1]
    assert first.meta and first.meta.has_more and first.meta.next_cursor == ids[1]
    assert (api.list(model_resources_id=home, after=ids[1], limit=1).data or [])[0].id == ids[0]
    active = api.list(status=["TRAINING_SESSION_STATUS_CREATING", "TRAINING_SESSION_STATUS_RUNNING"], created_by="me")
    assert set(ids) <= {each.id for each in active.data or []}
    assert api.list(created_by="somebody-else").data == []
    assert api.list(status=["TRAINING_SESSION_STATUS_EXPIRED"]).data == []
    running = ["TRAINING_SESSION_STATUS_CREATING", "TRAINING_SESSION_STATUS_RUNNING"]
    api.stop(ids[2])
    after = api.list(model_resources_id=home, status=running, after=ids[2]).data or []  # type: ignore[arg-type]
    assert [each.id for each in after][:2] == ids[1::-1], "though what they come after is not running any more"
    with pytest.raises(BadRequestError, match="after: is not in this list"):
        api.list(after="unheard-of")
    for session_id in ids[:2]:
        api.stop(session_id)


def test_inactive_sessions_expire_unless_their_expiry_was_extended(stack: Stack, sdk: Together) -> None:
    api = sdk.post_training
    homes = [api.model_resources.create(base_model="tiny", inactive_timeout=300).id for _ in range(2)]
    left, kept = (api.sessions.create(model_resources_id=home).id for home in homes)
    for session_id in (left, kept):
        assert api.sessions.retrieve(session_id).status == "TRAINING_SESSION_STATUS_RUNNING"
    settings = load_settings(stack.processes["worker"].service.environment)
    redis, store = connect(settings.redis), open_store(settings)
    for key in (*(keys.resources(home) for home in homes), *(keys.session(each) for each in (left, kept))):
        for time in ("created_at", "updated_at"):
            redis.hincrbyfloat(key, time, -301)
    api.model_resources.extend_expiry(homes[1], seconds=60)
    store.model_resources.sweep()
    store.close()
    redis.close()
    assert api.sessions.retrieve(left).status == "TRAINING_SESSION_STATUS_EXPIRED"
    assert api.model_resources.retrieve(homes[0]).status == "MODEL_RESOURCES_STATUS_STOPPED"
    expired = api.sessions.list(status=["TRAINING_SESSION_STATUS_EXPIRED"], model_resources_id=homes[0])
    assert [each.id for each in expired.data or []] == [left]
    with pytest.raises(BadRequestError, match="inactive"):
        api.operations.weights_sync(left, weight_sync_type="WEIGHT_SYNC_TYPE_PIPELINE", idempotency_key="k")
    assert api.sessions.retrieve(kept).status == "TRAINING_SESSION_STATUS_RUNNING"
    api.model_resources.stop(homes[1], force=True)


def test_a_session_of_one_api_is_unknown_to_the_other(sdk: Together, session: SessionClient, base_url: str) -> None:
    native = base_url.removesuffix("/together")
    with Together(base_url=native, api_key="any") as other, pytest.raises(NotFoundError):
        other.post_training.sessions.retrieve(session.session_id)
    made = sdk.post(f"{native}/v1/rl/training-sessions", cast_to=object, body={"base_model": "tiny"})
    with pytest.raises(NotFoundError):
        sdk.post_training.sessions.retrieve(made["session_id"])  # type: ignore[index]
    listed = sdk.get(f"{native}/v1/rl/training-sessions", cast_to=object)
    assert session.session_id not in str(listed)


def test_a_checkpoint_resumes_with_and_without_its_optimizer(
    session: SessionClient, resources: ModelResourcesClient
) -> None:
    session.trainer.forward_backward(samples=[supervised(PROMPT)], loss={"type": "LOSS_TYPE_CROSS_ENTROPY"})
    session.trainer.optim_step(adam_params={"learning_rate": 1e-2})
    saved = session.create_training_checkpoint()
    assert saved.step == 1
    before = session.trainer.forward(samples=[supervised(PROMPT)], loss={"type": "LOSS_TYPE_CROSS_ENTROPY"}).loss
    for load_optimizer, step in ((True, 1), (False, 0)):
        with resources.create_session(resume_from_checkpoint_id=saved.id, load_optimizer=load_optimizer) as again:
            state = again.retrieve()
            assert (state.step, state.policy_state.applied_weights_version) == (step, step)
            assert state.resume_from_checkpoint_id == saved.id
            loss = again.trainer.forward(samples=[supervised(PROMPT)], loss={"type": "LOSS_TYPE_CROSS_ENTROPY"}).loss
            assert loss == before
            again.trainer.forward_backward(samples=[supervised(PROMPT)], loss={"type": "LOSS_TYPE_CROSS_ENTROPY"})
            assert again.trainer.optim_step().step == step + 1


def test_resources_without_a_generator_are_not_sampled_from(base_url: str, sdk: Together) -> None:
    with (
        ModelResourcesClient.create(
            base_url=base_url, api_key="any", base_model="tiny", compute_config={"num_generator_replicas": 0}
        ) as resources,
        resources.create_session() as session,
    ):
        assert not session.has_generator
        with pytest.raises(BadRequestError, match="generator"):
            sdk.post_training.operations.sample(session.session_id, model_inputs=[tokens(1)], idempotency_key="k")
