"""Special tokens that are told in several files, as transformers takes them."""
import json
import os

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer

COMMON = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]
OWN = ["image_token", "audio_token"]
LISTED = ["boi", "video_token"]
TOKENS = ["<s>", "</s>", "<pad>", "<x>", "<y>", "<image>", "[MASK]", "a<", "Cat"]
TEMPLATE = "".join(f"{{{{ {name} }}}}|" for name in COMMON + OWN + LISTED) + \
    "{% for message in messages %}{% generation %}{{ message.content }}{% endgeneration %}{% endfor %}"


def flags(rng):
    return {name: rng.random() < 0.2 for name in ("lstrip", "rstrip", "single_word", "normalized")}


def token(rng, kind=None):
    """A token as text, as an object of `tokenizer_config.json`, or as one of `special_tokens_map.json`."""
    content = rng.choice(TOKENS)
    if kind is None or rng.random() < 0.6:
        return content
    told = {"content": content, **flags(rng)}
    return {"__type": "AddedToken", **told, "special": rng.random() < 0.7} if kind == "config" else told


def names(rng, kind, share, own):
    chosen = [name for name in COMMON + (OWN if own else []) if rng.random() < share]
    return {name: None if name in COMMON and rng.random() < 0.1 else token(rng, kind) for name in chosen}


def tokenizer(rng, path):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_tokens([AddedToken(content, special=rng.random() < 0.7, **flags(rng)) for content in rng.sample(TOKENS, rng.randrange(4))])
    if rng.random() < 0.2:
        made.enable_padding(pad_id=0, pad_token=rng.choice(TOKENS))
    made.save(path)
    return {token.content: number for number, token in made.get_added_tokens_decoder().items()}


def config(rng):
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True, **names(rng, "config", 0.3, True)}
    for name in ("extra_special_tokens", "additional_special_tokens"):
        kind = rng.randrange(6)
        if kind == 0:
            told[name] = None if name == "extra_special_tokens" else []
        elif kind == 1:
            told[name] = [token(rng, "config") for _ in range(rng.randrange(3))]
    if rng.random() < 0.2:
        told["extra_special_tokens"] = {name: token(rng, "config") for name in LISTED if rng.random() < 0.7}
    if rng.random() < 0.3:
        chosen = rng.sample(TOKENS, rng.randrange(4))
        told["added_tokens_decoder"] = {str(rng.randrange(250, 280)): {"content": content, **flags(rng), "special": rng.random() < 0.7}
                                        for content in chosen}
    return told


def older(rng):
    told = names(rng, "older", 0.4, False)
    told.update({name: rng.choice(TOKENS) for name in OWN if rng.random() < 0.3})
    kind = rng.randrange(5)
    if kind == 0:
        told["additional_special_tokens"] = rng.sample(TOKENS, rng.randrange(3))
    elif kind == 1:
        told["extra_special_tokens"] = rng.sample(TOKENS, rng.randrange(3))
    elif kind == 2:
        told["extra_special_tokens"] = {name: rng.choice(TOKENS) for name in LISTED if rng.random() < 0.7}
    return told


def special_set(rng, place):
    def write(name, content):
        with open(os.path.join(place, name), "w") as file:
            file.write(content)

    numbers = tokenizer(rng, os.path.join(place, "tokenizer.json"))
    write("chat_template.jinja", TEMPLATE)
    told = {"tokenizer_config.json": config(rng)}
    if rng.random() < 0.6:
        told["special_tokens_map.json"] = older(rng)
    if rng.random() < 0.2:
        chosen = enumerate(rng.sample(TOKENS, rng.randrange(4)))
        told["added_tokens.json"] = {content: numbers.get(content, 300 + number) for number, content in chosen}
    for name, content in told.items():
        write(name, json.dumps(content))
    known = AutoTokenizer.from_pretrained(place)
    lines = []
    for _ in range(5):
        pieces = TOKENS + [" ", "  ", "b", "a", "Cats", "\n"]
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 12)))
        chat = [{"role": "assistant", "content": text}]
        made = known.apply_chat_template(chat, return_dict=True, return_assistant_tokens_mask=True)
        lines.append({"chat": {"messages": chat}, "text": known.apply_chat_template(chat, tokenize=False),
                      "tokens": made["input_ids"], "mask": made["assistant_masks"]})
    write("chats.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return {"reader": "chat", "paths": [place], "how": json.dumps(told)}
