"""Makes gpt2.json, llama3.json and expected.json with Hugging Face's
tokenizers (0.22.2): two small vocabularies, learnt from the texts named on the
command line, and what that library encodes the texts below to."""

import json
import pathlib
import sys

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    models,
    pre_tokenizers,
    trainers,
)

HERE = pathlib.Path(__file__).parent
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEXTS = [
    "",
    " ",
    "\n",
    "a",
    "How many GPUs should this training use?",
    "I'll say it's what they've done, and we'd've known; DON'T, I'LL 'tis 'S",
    "  two spaces,   three   and\ttabs\t\tand \n newlines\n\n\n"
    "  x\r\ny \r z\n \n",
    "1 12 123 1234 1234567890 3.14159 1e-4 ½ ² Ⅷ ٣٤٥ 百",
    "naïve café Ünïcödé e\u0301 ΑΒΓ абв 日本語のテキスト 한국어 עברית नमस्ते",
    "👩\u200d🚀 👍🏽 🇩🇪 ⚡️ \ufeff \u200b \u00a0 \u2003x\u3000y "
    "\u2028z \x85 \x1c\x1f \x00\x7f",
    "def f(x):\n    return {'a': [1, 2], \"b\": x**2}  # !!! "
    "???\n\n\n\tif x != 3:\n",
    "<|endoftext|>a<|endoftext|><|end <|endoftext|",
    "<|start|>system<|start|>> <|startle|>",
    "training training-training trainingtraining TRAINING traiNing",
    "x" * 300,
    " " * 100 + "y" + " " * 99,
    "=" * 77 + "\n" + "-" * 33,
    "ab" * 120,
    "The share of the step that waits; of 4,096 GPUs, 12.5 % are idle.\n" * 5,
]


def train(name, pre, ignore, files, size):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore))
    tokenizer.pre_tokenizer = pre
    tokenizer.train(
        [str(f) for f in files],
        trainers.BpeTrainer(
            vocab_size=size,
            show_progress=False,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    tokenizer.add_special_tokens(["<|start|>"])
    tokenizer.add_tokens([AddedToken("<|startle|>", normalized=True)])
    tokenizer.save(str(HERE / name), pretty=False)
    return {
        "vocabulary": tokenizer.get_vocab_size(),
        "ids": [
            tokenizer.encode(text, add_special_tokens=False).ids
            for text in TEXTS
        ],
    }


found = {"texts": TEXTS}
found["gpt2.json"] = train(
    "gpt2.json",
    pre_tokenizers.ByteLevel(add_prefix_space=False),
    False,
    sys.argv[1:],
    700,
)
found["llama3.json"] = train(
    "llama3.json",
    pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    ),
    True,
    sys.argv[1:],
    700,
)
(HERE / "expected.json").write_text(json.dumps(found))
