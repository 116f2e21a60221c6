"""Small tokenisers in the layouts of GPT-2 and Llama 2, and what the `tokenizers` package makes of some texts.

    pip install tokenizers
    python make_tokens.py

Writes gpt2/{vocab.json,merges.txt,tokenizer.json}, llama2/tokenizer.json and encodings.json beside this script.
"""

import json
import pathlib

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
LEARN = [
    "The patient was given 5 mg of warfarin, then 7.5 mg; the dose isn't final.",
    "John Smith's credit card number is 4111 1111 1111 1111. Don't tell anyone that we're here.",
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park.",
    "for (int i = 0; i < n; i++) {\n    sum += x[i] * w[i];\n}\n\n\treturn sum;",
    "Größe 180 cm, naïve café, “quotes” … and — dashes.",
]
TEXTS = LEARN + [
    "",
    " ",
    "a",
    "   leading and trailing   ",
    "tabs\tand\n\nnewlines \n mixed  \t\n",
    "you'll I'd we've they're 'tis rock'n'roll 'S 'T",
    "日本語のテキスト и кириллица ελληνικά עברית हिन्दी",
    "emoji 👩‍⚕️🇩🇪 ½ ² Ⅷ ٣ x²+y₃",
    "no\u00a0break\u2003em\u3000wide",
    "combining e\u0301 a\u0308 \u200bzero",
    "<|endoftext|> inside <|endoftext|>text",
    "0123456789 1e-5 1,000,000.00 A1B2C3",
    "\u0000\u0001\u007f control",
]


def gpt2() -> Tokenizer:
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(
        LEARN * 3,
        trainers.BpeTrainer(
            vocab_size=420,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=["<|endoftext|>"],
            show_progress=False,
        ),
    )
    return t


def llama2() -> Tokenizer:
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    special = ["<unk>", "<s>", "</s>"]
    learner = Tokenizer(models.BPE())
    learner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    learner.train_from_iterator(LEARN * 3, trainers.BpeTrainer(vocab_size=200, show_progress=False))
    learned = json.loads(learner.to_str())["model"]
    vocabulary = {piece: i for i, piece in enumerate(special + bytes_)}
    for piece in sorted(learned["vocab"], key=learned["vocab"].get):
        vocabulary.setdefault(piece, len(vocabulary))
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in learned["merges"]]
    t = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer = learner.normalizer
    t.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in special])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return t


def main() -> None:
    result = {"texts": TEXTS}
    for name, t in [("gpt2", gpt2()), ("llama2", llama2())]:
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        t.save(str(folder / "tokenizer.json"), pretty=False)
        result[name] = [t.encode(text).ids for text in TEXTS]
        if name == "gpt2":
            t.model.save(str(folder))
    (HERE / "encodings.json").write_text(json.dumps(result, ensure_ascii=True, indent=0) + "\n")


main()
