"""Chats as transformers writes and tokenises them, by templates of the forms that models have."""
import functools
import json
import os
import re

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, tokenization_utils_base
from transformers.utils import chat_template_utils

import talks

FOLDER = os.path.join(os.path.dirname(__file__), "templates")
FORMS = sorted(name.removesuffix(".jinja") for name in os.listdir(FOLDER) if name.count(".") == 1)
# How a block is written, by the signs for white space around it.
BLOCKS = [("{% generation %}", "{% endgeneration %}"), ("{%- generation -%}", "{%- endgeneration -%}"),
          ("{%generation%}", "{%- endgeneration %}")]
# How many chats a template is tried with, and the day that `strftime_now` writes.
CHATS = 20
DATE = (2026, 11, 6)


class Day(chat_template_utils.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(*DATE)


chat_template_utils.datetime = Day
# The nulls of messages are taken out here: see `without_nulls`.
tokenization_utils_base._normalize_chat_messages = list


def without_nulls(messages, template):
    """Messages without their nulls, as transformers gives them to a template, but for a `content` that is null (OpenAI's form of a call),
    and for fields of which the template asks whether they are none."""
    def stays(key, value):
        asked = rf"\b{re.escape(key)}\b['\")\]]*\s*(is\s+(not\s+)?|[!=]=\s*)none"
        return value is not None or key == "content" or re.search(asked, template, re.IGNORECASE)

    return [{key: value for key, value in message.items() if stays(key, value)} for message in messages]


def read(form):
    with open(os.path.join(FOLDER, f"{form}.jinja"), newline="") as file:
        return file.read()


def template_of(rng, form, first):
    """A template of a form: one of each choice, the first of all if this is asked for."""
    choose = (lambda choices: choices[0]) if first else rng.choice
    return re.sub("⟦(.*?)⟧", lambda found: choose(found[1].split("¦")), read(form), flags=re.DOTALL)


@functools.cache
def special_tokens(form):
    return sorted(set(re.findall(r"<\|?[\w▁｜]+\|?>|<｜[^<>]+｜>|\[/?[A-Z_]+\]|\]~?[a-z!]*\[", read(form))) - {"<think>", "</think>"})[:40]


@functools.cache
def tokenizer(form):
    """A tokeniser that is trained on the pieces of chats, so that its tokens have several letters, and letters several tokens."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=440, special_tokens=["<s>", "</s>", *special_tokens(form)], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(talks.TEXTS * 3 + [read(form)], trainer)
    return made.to_str()


def has_blocks(template):
    return re.search(r"{%[-+]?\s*generation\b", template) is not None


def given(known, chat, others):
    """What transformers is given of a chat: the messages, and all else."""
    rest = {**chat, **others}
    return without_nulls(rest.pop("messages"), known.get_chat_template(tools=chat.get("tools"))), rest


def write(known, chat, **others):
    """The text of a chat."""
    messages, rest = given(known, chat, others)
    return known.apply_chat_template(messages, tokenize=False, **rest)


def learned_in_blocks(known, chat):
    """The parts of a text that its template has in blocks, and the mask of its tokens."""
    messages, rest = given(known, chat, {"return_assistant_tokens_mask": True})
    template = known.get_chat_template(tools=chat.get("tools"))
    _, parts = chat_template_utils.render_jinja_template([messages], chat_template=template, **known.special_tokens_map, **rest)
    return parts[0], known.apply_chat_template(messages, return_dict=True, **rest)["assistant_masks"]


def prompt_of(known, chat, messages):
    """What stands behind messages so that the assistant answers."""
    texts = [write(known, chat, messages=messages, add_generation_prompt=prompts) for prompts in (False, True)]
    return texts[1].removeprefix(texts[0]) if texts[1].startswith(texts[0]) else ""


def has_prompt(known, chat):
    """Whether a template says where an answer begins, by its blocks or by a prompt."""
    try:
        template = known.get_chat_template(tools=chat.get("tools"))
        return has_blocks(template) or prompt_of(known, chat, [{"role": "user", "content": "a"}]) != ""
    except Exception:  # the template refuses such a chat
        return False


def learned_by_growth(known, chat, whole):
    """What each answer adds behind its prompt, in letters. None where what is before it is written in another way."""
    messages, parts = chat["messages"], []
    for at, one in enumerate(messages):
        if one["role"] != "assistant":
            continue
        here = write(known, chat, messages=messages[:at + 1], add_generation_prompt=False)
        if at == 0:  # Nothing is written of no messages.
            prompt = prompt_of(known, chat, [one, {"role": "user", "content": "a"}])
            start = here.find(prompt) + len(prompt) if prompt in here else -1
        else:
            before = write(known, chat, messages=messages[:at], add_generation_prompt=True)
            start = len(before) if here.startswith(before) else -1
        if start < 0 or not whole.startswith(here):
            return None
        parts.append((start, len(here)))
    return parts


def learned(known, chat, line):
    """The parts that are learned, and the mask of the tokens; None if nothing tells them."""
    if has_blocks(known.get_chat_template(tools=chat.get("tools"))):
        return learned_in_blocks(known, chat)
    try:
        parts = learned_by_growth(known, chat, line["text"])
    except Exception:  # the template refuses a part of the chat
        return None
    places = known(line["text"], add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return None if parts is None else (parts, [int(any(start < end and begin < stop for start, stop in parts)) for begin, end in places])


def expected(known, chat):
    """What transformers makes of a chat, or why the template refuses it."""
    try:
        line = {"chat": chat, "text": write(known, chat)}
    except Exception as error:  # whatever the template or Jinja refuses
        return {"chat": chat, "refused": f"{type(error).__name__}: {error}"}
    line["tokens"] = known(line["text"], add_special_tokens=False)["input_ids"]
    found = learned(known, chat, line)
    if found is not None:
        parts, mask = found
        # An answer of no letters within a token is nothing to learn.
        line["mask"] = mask if any(start < stop for start, stop in parts) else [0] * len(mask)
    return line


def random_chat(rng, known, form):
    """A chat. It begins with the assistant only where a prompt tells where that begins."""
    chat = talks.chat(rng, special_tokens(form))
    while chat["messages"][0]["role"] == "assistant" and not has_prompt(known, chat):
        del chat["messages"][0]
    return chat


def put(place, name, text):
    os.makedirs(os.path.dirname(os.path.join(place, name)), exist_ok=True)
    with open(os.path.join(place, name), "w", newline="") as file:
        file.write(text)


def save(rng, place, form, templates):
    """The files of a tokeniser, with its template where one of the versions of transformers has put it."""
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": {"__type": "AddedToken", "content": "</s>"}}
    config["bos_token"] = rng.choice(["<s>"] * 9 + [None])
    if len(templates) > 1 and rng.random() < 0.5:
        config["chat_template"] = [{"name": name, "template": text} for name, text in templates.items()]
    elif len(templates) == 1 and rng.random() < 0.4:
        config["chat_template"] = templates["default"]
    else:
        for name, text in templates.items():
            put(place, "chat_template.jinja" if name == "default" else f"additional_chat_templates/{name}.jinja", text)
    put(place, "tokenizer.json", tokenizer(form))
    put(place, "tokenizer_config.json", json.dumps(config))


def chat_set(rng, place):
    number = int(place.rsplit("-", 1)[1])  # so that each form has its turn
    form, first = FORMS[number % len(FORMS)], number < len(FORMS)
    begin, end = rng.choice(BLOCKS) if rng.random() < 0.6 else ("", "")
    names = {"default": form} | ({"tool_use": f"{form}.tool_use"} if os.path.exists(os.path.join(FOLDER, f"{form}.tool_use.jinja")) else {})
    templates = {name: template_of(rng, file, first).replace("«", begin).replace("»", end) for name, file in names.items()}
    save(rng, place, form, templates)
    known = AutoTokenizer.from_pretrained(place)
    with open(os.path.join(place, "chats.jsonl"), "w") as file:
        for _ in range(CHATS):
            file.write(json.dumps(expected(known, random_chat(rng, known, form))) + "\n")
    return {"reader": "chat", "paths": [place], "how": f"{form}, {f'with {begin}' if begin else 'without blocks'}"}
