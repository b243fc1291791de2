// One GRPO step through Together's API, with the types of its own document.
import createClient from "openapi-fetch";
import type { paths } from "./together-api.js";

const client = createClient<paths>({ baseUrl: process.argv[2] ?? "" });
const prompt = [5, 6, 7];
const OPERATIONS = "/together/v1/rl/training-sessions/{session_id}/operations";

function present<T>(value: T | undefined, error?: unknown): T {
  if (value === undefined) throw new Error(JSON.stringify(error ?? "the result is missing"));
  return value;
}

type Read<T> = () => Promise<{ data?: { output?: T; error?: { message: string } }; error?: unknown }>;

async function output<T>(read: Read<T>): Promise<T> {
  for (;;) {
    const { data, error } = await read();
    const operation = present(data, error);
    if (operation.error) throw new Error(operation.error.message);
    if (operation.output) return operation.output;
  }
}

const made = await client.POST("/together/v1/rl/model-resources", { body: { base_model: "tiny" } });
const model_resources_id = present(made.data, made.error).id;
const created = await client.POST("/together/v1/rl/training-sessions", { body: { model_resources_id } });
const session_id = present(created.data, created.error).id;
const params = { path: { session_id } };
const asked = await client.POST(`${OPERATIONS}/sample` as const, {
  params,
  body: {
    model_inputs: [{ chunks: [{ encoded_text: { tokens: prompt } }] }],
    num_samples: 2,
    sampling_params: { max_tokens: 4, seed: 1 },
  },
});
const sample_id = present(asked.data, asked.error).id;
const { results } = await output(() =>
  client.GET(`${OPERATIONS}/sample/{operation_id}` as const, {
    params: { path: { session_id, operation_id: sample_id } },
  }),
);
const samples = present(results[0]).sequences.map((sequence, index) => {
  const zeros = prompt.slice(1).map(() => 0);
  const trained = (of: number[]) => ({ data: [...zeros, ...of], dtype: "float32" as const });
  return {
    model_input: { chunks: [{ encoded_text: { tokens: [...prompt, ...sequence.tokens.slice(0, -1)] } }] },
    loss_fn_inputs: {
      target_tokens: { data: [...prompt.slice(1), ...sequence.tokens], dtype: "int64" as const },
      mask: trained(sequence.tokens.map(() => 1)),
      advantages: trained(sequence.tokens.map(() => (index ? -1 : 1))),
      logprobs: trained(sequence.logprobs),
    },
  };
});
const trained = await client.POST(`${OPERATIONS}/forward-backward` as const, {
  params,
  body: { samples, loss: { type: "LOSS_TYPE_GRPO" } },
});
present(trained.data, trained.error);
const stepped = await client.POST(`${OPERATIONS}/optim-step` as const, { params, body: {} });
const step_id = present(stepped.data, stepped.error).id;
const { step } = await output(() =>
  client.GET(`${OPERATIONS}/optim-step/{operation_id}` as const, {
    params: { path: { session_id, operation_id: step_id } },
  }),
);
console.log(`step ${step}`);
