"""Small random models as `transformers` writes them, and what PyTorch makes of some texts in double precision.

    pip install torch transformers
    python make_models.py

Writes gpt2/{config.json,model.safetensors} (tied output, fused attention, one file), llama2/{config.json,model.safetensors.index.json,
model-*.safetensors} (grouped heads, own output, sharded), llama2.bin (the same weights in the layout of llama2.c: queries
and keys turned by neighbours) and models.json beside this script.
"""

import json
import pathlib
import struct

import torch
from tokenizers import Tokenizer
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama

HERE = pathlib.Path(__file__).parent
TEXTS = ["The patient was given 5 mg of warfarin.", "Once upon a time, there was a little girl", "x²+y"]
BASE = 10_000.0


# Llama's norms and angles are cast to single precision wherever the model computes; here they are not.
def norm(self, x):
    return self.weight * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.variance_epsilon))


def angles(self, x, position_ids):
    half = torch.arange(0, self.config.head_dim, 2, dtype=torch.float64) / self.config.head_dim
    angle = position_ids[:, :, None].double() * (BASE ** -half)[None, None, :]
    angle = torch.cat((angle, angle), -1)
    return angle.cos().to(x.dtype), angle.sin().to(x.dtype)


modeling_llama.LlamaRMSNorm.forward = norm
modeling_llama.LlamaRotaryEmbedding.forward = angles


def draw(model):
    """Weights large enough for every part to matter; biases and norms that are not 0 and 1."""
    generator = torch.Generator().manual_seed(7)
    for name, p in model.named_parameters():
        values = torch.randn(p.shape, generator=generator)
        is_norm = "ln_" in name or "norm" in name
        p.data = 1 + 0.2 * values if is_norm and name.endswith("weight") else 0.3 * values
    return model


def gpt2(vocabulary):
    config = GPT2Config(
        vocab_size=vocabulary, n_positions=48, n_embd=12, n_layer=2, n_head=3, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
    )
    return draw(GPT2LMHeadModel(config))


def llama(vocabulary):
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
        num_key_value_heads=1, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False,
    )
    return draw(LlamaForCausalLM(config))


def llama2c(model, path):
    c, w = model.config, {k: v.detach() for k, v in model.state_dict().items()}

    def neighbours(x, heads):
        return x.view(heads, 2, -1, x.shape[-1]).transpose(1, 2).reshape(x.shape)

    def layers(name, change=lambda x: x):
        return [change(w[f"model.layers.{i}.{name}.weight"]) for i in range(c.num_hidden_layers)]

    half = c.head_dim // 2
    arrays = [
        w["model.embed_tokens.weight"],
        *layers("input_layernorm"),
        *layers("self_attn.q_proj", lambda x: neighbours(x, c.num_attention_heads)),
        *layers("self_attn.k_proj", lambda x: neighbours(x, c.num_key_value_heads)),
        *layers("self_attn.v_proj"),
        *layers("self_attn.o_proj"),
        *layers("post_attention_layernorm"),
        *layers("mlp.gate_proj"),
        *layers("mlp.down_proj"),
        *layers("mlp.up_proj"),
        w["model.norm.weight"],
        torch.zeros(2 * c.max_position_embeddings * half),  # tables of angles, which run.c skips
        w["lm_head.weight"],
    ]
    header = struct.pack(
        "<7i", c.hidden_size, c.intermediate_size, c.num_hidden_layers, c.num_attention_heads, c.num_key_value_heads,
        -c.vocab_size, c.max_position_embeddings,
    )
    path.write_bytes(header + b"".join(a.contiguous().float().numpy().tobytes() for a in arrays))


def golden(model, tokenizer):
    model = model.double().eval()
    out = []
    for text in TEXTS:
        ids = torch.tensor([tokenizer.encode(text).ids])
        model.zero_grad()
        logits = model(input_ids=ids).logits[0]
        # not transformers' own loss, which is in single precision whatever the model is in
        loss = torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:])
        loss.backward()
        squares = sum(float((p.grad**2).sum()) for p in model.parameters())
        out.append({
            "text": text,
            "ids": ids[0].tolist(),
            "loss": loss.item(),
            "gradient_norm": squares**0.5,
            # before the last token; of one text, for the size of the file
            "logits": [] if out else logits[-2].tolist(),
        })
    return out


def main():
    out = {}
    for name, make in (("gpt2", gpt2), ("llama2", llama)):
        tokenizer = Tokenizer.from_file(str(HERE / name / "tokenizer.json"))
        model = make(tokenizer.get_vocab_size())
        for old in (HERE / name).glob("model*"):
            old.unlink()
        model.save_pretrained(HERE / name, max_shard_size="14KB" if name == "llama2" else "1GB")
        if name == "llama2":
            llama2c(model, HERE / "llama2.bin")
        for file in (HERE / name).glob("model*"):
            file.chmod(0o644)
        (HERE / name / "generation_config.json").unlink(missing_ok=True)
        out[name] = golden(model, tokenizer)
    (HERE / "models.json").write_text(json.dumps(out))


main()
