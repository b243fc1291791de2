"""How each family of transformers' causal language models is made tiny."""

from typing import Any

# Before December 2023, or no model of text alone.
OLDER = {
    "bart", "bert", "bert-generation", "big_bird", "bigbird_pegasus", "biogpt", "blenderbot", "blenderbot-small",
    "bloom", "camembert", "codegen", "cpmant", "ctrl", "data2vec-text", "electra", "ernie", "falcon", "fuyu", "git",
    "gpt-sw3", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gpt_neox_japanese", "gptj", "marian", "mbart",
    "megatron-bert", "mpt", "musicgen", "musicgen_melody", "mvp", "openai-gpt", "opt", "pegasus", "persimmon",
    "plbart", "prophetnet", "reformer", "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer",
    "rwkv", "trocr", "whisper", "xglm", "xlm", "xlm-roberta", "xlm-roberta-xl", "xlnet", "xmod", "moshi",
    "moss_transcribe_diarize",
}  # fmt: skip

# That no small model could be made of, and why.
UNTRIED = {
    **dict.fromkeys(
        ("blt", "cohere_compass_text", "dbrx", "dots3_note", "dots3_note_text", "gemma4_assistant",
         "gemma4_unified_assistant", "inkling2_loop_text", "inkling2_text", "longcat_flash", "mllama",
         "phi4_multimodal", "qwen4_exp", "qwen4_exp_text", "zamba"), "it has no small configuration"),
    "gemma3n": "it needs the package timm",
}  # fmt: skip

# By name, for those families that have a setting of this name.
SIZES: dict[str, Any] = {
    "vocab_size": 256, "hidden_size": 32, "intermediate_size": 48, "moe_intermediate_size": 16, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512,
    "num_experts": 5, "num_local_experts": 5, "n_routed_experts": 5, "moe_num_experts": 5, "num_experts_per_tok": 2,
    "n_group": 1, "topk_group": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
    "v_head_dim": 8, "shared_expert_intermediate_size": 16, "sliding_window": 7, "bos_token_id": None,
    "eos_token_id": 0, "pad_token_id": None, "first_k_dense_replace": 1, "n_shared_experts": 1,
    "initializer_range": 0.2,
    # Of what sees or hears.
    "image_size": 28, "patch_size": 14, "depth": 1, "num_hidden_layers_vision": 1, "vision_intermediate_size": 48,
}  # fmt: skip
_LATENT = {"num_key_value_heads": 4}
_MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 16}
_IDS = {"bos_token_id": 1, "pad_token_id": 2}

SETTINGS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        ("deepseek_v2", "deepseek_v3", "deepseek_v32", "sarvam_mla", "glm4_moe_lite", "axk1", "axk2", "bailing_hybrid",
         "glm_moe_dsa", "kimi_linear", "minicpm3", "youtu"), _LATENT),
    "cwm": _IDS,
    **dict.fromkeys(
        ("modernbert-decoder", "emu3", "emu3_text_model", "mllama", "mllama_text_model", "gemma4", "gemma4_unified",
         "gemma4_unified_text"), _IDS),
    "bamba": _MAMBA,
    "granitemoehybrid": _MAMBA | {"layer_types": ["mamba", "attention"]},
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1, "state_size": 16},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "zamba2": {"layers_block_type": ["mamba", "hybrid"]},
    "zaya": {"num_experts_per_tok": 1},
    "ernie4_5_moe": {"moe_k": 2},
    "gemma3n_text": {
        "num_kv_shared_layers": 0, "vocab_size_per_layer_input": 256, "hidden_size_per_layer_input": 8,
        "laurel_rank": 4,
    },
    "gemma4_text": _IDS
    | {"num_kv_shared_layers": 0, "vocab_size_per_layer_input": 256, "hidden_size_per_layer_input": 8},
    "dots3_note_text": {"num_key_value_heads": 4},
}  # fmt: skip
