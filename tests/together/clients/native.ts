// One GRPO step through the native API, with the types of its own document.
import createClient from "openapi-fetch";
import type { components, paths } from "./native-api.js";

const client = createClient<paths>({ baseUrl: process.argv[2] ?? "" });
const prompt = [5, 6, 7];

function present<T>(value: T | undefined, error?: unknown): T {
  if (value === undefined) throw new Error(JSON.stringify(error ?? "the result is missing"));
  return value;
}

async function ended<T extends components["schemas"]["SampleOperation"]>(read: () => Promise<{ data?: T; error?: unknown }>) {
  for (;;) {
    const { data, error } = await read();
    const operation = present(data, error);
    if (operation.status === "TRAINING_OPERATION_STATUS_COMPLETED") return operation;
    if (operation.status === "TRAINING_OPERATION_STATUS_FAILED") throw new Error(operation.error?.message);
  }
}

const created = await client.POST("/v1/rl/training-sessions", { body: { base_model: "tiny" } });
const session_id = present(created.data, created.error).session_id;
const params = { path: { session_id } };
const asked = await client.POST("/v1/rl/training-sessions/{session_id}:sample", {
  params,
  body: {
    prompt: { chunks: [{ encoded_text: { tokens: prompt } }] },
    num_samples: 2,
    sampling_params: { max_tokens: 4, seed: 1 },
  },
});
const operation_id = present(asked.data, asked.error).operation_id;
const sampled = await ended(() =>
  client.GET("/v1/rl/training-sessions/{session_id}/operations/sample/{operation_id}", {
    params: { path: { session_id, operation_id } },
  }),
);
const samples = present(sampled.data).sequences.map((sequence, index) => {
  const zeros = prompt.map(() => 0);
  return {
    model_input: { chunks: [{ encoded_text: { tokens: [...prompt, ...sequence.tokens] } }] },
    loss_inputs: {
      loss_mask: { data: [...zeros, ...sequence.tokens.map(() => 1)] },
      grpo_inputs: {
        advantages: { data: [...zeros, ...sequence.tokens.map(() => (index ? -1 : 1))] },
        generator_logprobs: { data: [...zeros, ...sequence.logprobs] },
      },
    },
  };
});
const trained = await client.POST("/v1/rl/training-sessions/{session_id}:forward-backward", {
  params,
  body: { samples, loss: { type: "LOSS_TYPE_GRPO" } },
});
present(trained.data, trained.error);
const stepped = await client.POST("/v1/rl/training-sessions/{session_id}:optim-step", { params, body: {} });
const step_id = present(stepped.data, stepped.error).operation_id;
for (;;) {
  const { data, error } = await client.GET(
    "/v1/rl/training-sessions/{session_id}/operations/optim-step/{operation_id}",
    { params: { path: { session_id, operation_id: step_id } } },
  );
  const operation = present(data, error);
  if (operation.status === "TRAINING_OPERATION_STATUS_FAILED") throw new Error(operation.error?.message);
  if (operation.data) {
    console.log(`step ${operation.data.step}`);
    break;
  }
}
