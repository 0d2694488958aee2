"""Chats as transformers writes and tokenises them, by templates of the forms that models have."""
import json
import os

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

# Each form is a template without blocks `generation`, and the same with them. What stands between « and » is what the assistant says.
CHATML = """\
{%- if tools %}
<|im_start|>system
Tools: {{ tools | tojson }}<|im_end|>
{% endif %}
{%- for message in messages %}
{% if message.role == 'assistant' %}
<|im_start|>assistant
«{% if message.reasoning_content is defined and loop.last %}
<think>{{ message.thinking }}</think>
{% endif %}
{{- message.content | default('', true) }}
{%- for call in message.tool_calls | default([]) %}
<call>{{ call | tojson(indent=2) }}</call>
{%- endfor %}
<|im_end|>»
{% else %}
{{- '<|im_start|>' + message['role'] + '\\n' + message.content.strip() + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
<|im_start|>assistant
{% endif %}
"""

# The header of each message, and a text that starts with the first token.
LLAMA = """\
{{- bos_token }}
{%- macro head(role) -%}
<|start|>{{ role }}<|stop|>

{% endmacro %}
{%- if messages[0]['role'] == 'system' -%}
    {%- set system = messages[0]['content'] | trim -%}
    {%- set messages = messages[1:] -%}
{%- else -%}
    {%- set system = 'Plain words.' -%}
{%- endif -%}
{{ head('system') }}{{ system }}
{%- if tools is not none %}
    {%- for tool in tools %}
 Tool {{ loop.index }}: {{ tool | tojson(indent=4) }}
    {%- endfor %}
{%- endif -%}
{{ eos_token }}
{%- for message in messages -%}
    {{ head(message.role) }}
    {%- if message.role == 'assistant' -%}
        «{%- if message.tool_calls is defined -%}
            {{ message.tool_calls[0].function | tojson }}
        {%- else -%}
            {{ message.content | trim }}
        {%- endif -%}
        {{ eos_token }}»
    {%- else -%}
        {{ message.content | trim + eos_token }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ head('assistant') }}
{%- endif -%}
"""

# Turns that must alternate, without a prompt for the assistant; the system's words go to the first question.
MISTRAL = """\
{%- set ns = namespace(turn=0, system='') %}
{{- bos_token }}
{%- for message in messages %}
    {%- if message['role'] == 'system' %}
        {%- set ns.system = message['content'] ~ '\\n\\n' %}
        {%- continue %}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {%- if ns.turn % 2 %}{{ raise_exception('turns must alternate') }}{% endif %}
        {%- set ns.turn = ns.turn + 1 %}
        {{- '[INST] ' + ns.system + message['content'] + ' [/INST]' }}
        {%- set ns.system = '' %}
    {%- elif message['role'] == 'assistant' %}
        {%- set ns.turn = ns.turn + 1 %}
        {{- '' }}«{{ ' ' + (message['content'] or '-') + eos_token }}»
    {%- else %}
        {{- '[RESULT]' ~ message.content ~ '[/RESULT]' }}
        {%- set ns.turn = 1 %}
    {%- endif %}
{%- endfor %}
"""

# The assistant has another name, and the text of a message is cut of spaces by a filter.
GEMMA = """\
{{ bos_token }}
{% for message in messages %}
    {% set role = 'model' if message['role'] == 'assistant' else message['role'] %}
    {% if loop.index0 > 0 and role == messages[loop.index0 - 1]['role'] %}
        {{ raise_exception('twice ' + role) }}
    {% endif %}
{{ '<turn>' + role }}
    {% if role == 'model' %}
«{{ (message['content'] or '') | trim }}{% if message.tool_calls is defined %}
 {{ message.tool_calls | length }} calls: {{ message.tool_calls | map(attribute='function') | map(attribute='name') | join(', ') }}
    {% endif %}
<end>»
    {% else %}
{{ message['content'] | trim | replace('a', 'A') if message.content.startswith(' ') else message['content'] | trim }}<end>
    {% endif %}
{% endfor %}
{% if add_generation_prompt %}
<turn>model
{% endif %}
"""

FORMS = {"chatml": CHATML, "llama": LLAMA, "mistral": MISTRAL, "gemma": GEMMA}
# How a block is written, by the signs for white space around it.
BLOCKS = [("{% generation %}", "{% endgeneration %}"), ("{%- generation -%}", "{%- endgeneration -%}"),
          ("{%generation%}", "{%- endgeneration %}")]
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start|>", "<|stop|>", "<turn>", "<end>", "[INST]", "[/INST]"]
PIECES = ["hello", " a tree", "Zahl 7", "é", "日本語", "👩‍🚀", "\n", "\n\n", "  ", "\t", "'s", "<|im_end|>", "{{ x }}", "{% generation %}",
          "<b>&amp;</b>", "\"quoted\"", "\\n", "1234567", "a" * 30, "ß", "\u200b", "</s>", "x=1;"]


def text(rng, least=0):
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(least, 12)))


def value(rng, depth=0):
    kind = rng.randint(0, 5 if depth > 2 else 7)
    if kind < 6:
        return [None, True, False, rng.randint(-10**12, 10**12), rng.choice([0.5, -1.25, 1e-3, 3.0]), text(rng)][kind]
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return {f"{rng.choice('zyxwa')}{n}": value(rng, depth + 1) for n in range(rng.randint(0, 3))}


def message(rng, role):
    if role == "assistant" and rng.random() < 0.2:
        call = {"type": "function", "function": {"name": rng.choice("fgh"), "arguments": {"b": value(rng), "a": value(rng)}}}
        return {"role": role, "content": None, "tool_calls": [call] * rng.randint(1, 2)}
    one = {"role": role, "content": text(rng, 1)}
    if rng.random() < 0.2:
        one["tool_calls"] = None
    if role == "assistant" and rng.random() < 0.1:
        one[rng.choice(["reasoning_content", "thinking", "reasoning"])] = text(rng)
    return one


def chat(rng):
    messages = [message(rng, "system")] if rng.random() < 0.4 else []
    for _ in range(rng.randint(1, 4)):
        messages += [message(rng, "user"), message(rng, "assistant")]
    messages += [message(rng, "user") for _ in range(rng.choice([0, 0, 0, 0, 1, 2]))]
    tools = [{"name": rng.choice("fgh"), "parameters": value(rng)} for _ in range(rng.randint(1, 2))]
    return {"messages": messages, "tools": tools if rng.random() < 0.4 else None}


def tokenizer(place):
    """A tokeniser that is trained on the pieces of chats, so that its tokens have several letters, and letters several tokens."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(PIECES * 3 + list(FORMS.values()), trainer)
    made.save(os.path.join(place, "tokenizer.json"))
    return PreTrainedTokenizerFast(tokenizer_file=os.path.join(place, "tokenizer.json"), bos_token="<s>", eos_token="</s>")


def write(known, template, chat, prompt=False):
    return known.apply_chat_template(chat["messages"], tools=chat["tools"], chat_template=template, tokenize=False,
                                     add_generation_prompt=prompt)


def learned_by_growth(known, template, chat):
    """What each message of the assistant adds behind its prompt, in letters. None where what is before it is written in another way."""
    whole, parts = write(known, template, chat), []
    for at, one in enumerate(chat["messages"]):
        if one["role"] == "assistant":
            before = write(known, template, {**chat, "messages": chat["messages"][:at]}, True)
            here = write(known, template, {**chat, "messages": chat["messages"][:at + 1]})
            if not (here.startswith(before) and whole.startswith(here)):
                return None
            parts.append((len(before), len(here)))
    return parts


def expected(known, template, has_blocks, chat):
    """What transformers makes of a chat, or None if the template refuses it."""
    try:
        line = {"chat": chat, "text": write(known, template, chat)}
        if has_blocks:
            made = known.apply_chat_template(chat["messages"], tools=chat["tools"], chat_template=template, return_dict=True,
                                             return_assistant_tokens_mask=True)
            return {**line, "tokens": made["input_ids"], "mask": made["assistant_masks"]}
        made = known(line["text"], add_special_tokens=False, return_offsets_mapping=True)
        parts = learned_by_growth(known, template, chat)
        if parts is not None:
            line["mask"] = [int(any(start < end and begin < stop for start, stop in parts)) for begin, end in made["offset_mapping"]]
        return {**line, "tokens": made["input_ids"]}
    except Exception as error:  # whatever the template or Jinja refuses
        return {"chat": chat, "refused": str(error)}


def chat_set(rng, place):
    known = tokenizer(place)
    form, has_blocks = rng.choice(sorted(FORMS)), rng.random() < 0.6
    begin, end = rng.choice(BLOCKS) if has_blocks else ("", "")
    template = FORMS[form].replace("«", begin).replace("»", end)
    with open(os.path.join(place, "chat_template.jinja"), "w") as file:
        file.write(template)
    with open(os.path.join(place, "tokenizer_config.json"), "w") as file:
        json.dump({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": True}, file)
    with open(os.path.join(place, "chats.jsonl"), "w") as file:
        for _ in range(20):
            file.write(json.dumps(expected(known, template, has_blocks, chat(rng))) + "\n")
    return {"reader": "chat", "paths": [place], "how": f"{form}, with {begin or 'no blocks'}"}
