"""Random chats, with what data sets and servers of chats have in them: tools, calls, nulls, parts, thoughts, documents."""
TEXTS = ["hello", " a tree", "Zahl 7", "é", "日本語", "👩‍🚀", "\n", "\n\n", "  ", "\t", "'s", "it's", "{{ x }}", "{% generation %}", "<b>&amp;</b>",
         "\"quoted\"", "\\n", "1234567", "a" * 30, "ß", "\u200b", "x=1;", "\r\n", "<think>", "</think>", "\u2028", "İ", "\x7f", "%s", "Ω≈ç"]
NUMBERS = [0, 1, -7, 42, 10**12, 2**53 + 1, 2**63 - 1, -2**63, 2**64 - 1, 0.5, -1.25, 1e-3, 3.0, 1e-05, 1e16, 1e15, 123456789.125, 1e22, 1e30, -0.0, 5e-324, 2.5e-07]
KEYS = ["place", "when", "unit", "größe", "n", "a b", "type", "items", "name"]


def text(rng, special, least=0, most=8):
    pieces = TEXTS + special if special and rng.random() < 0.3 else TEXTS
    return "".join(rng.choice(pieces) for _ in range(rng.randint(least, most)))


def value(rng, special, depth=0):
    kind = rng.randint(0, 6 if depth > 2 else 9)
    if kind < 3:
        return [None, True, False][kind]
    if kind < 7:
        return rng.choice(NUMBERS) if kind < 5 else text(rng, special)
    if kind == 7:
        return [value(rng, special, depth + 1) for _ in range(rng.randint(0, 3))]
    return {key: value(rng, special, depth + 1) for key in rng.sample(KEYS, rng.randint(0, 3))}


def schema(rng, special, depth=0):
    """The type of a parameter, as JSON Schema."""
    kind = rng.choice(["string", "number", "integer", "boolean", "array", "object"] if depth < 2 else ["string", "number"])
    made = {"type": [kind, "null"] if rng.random() < 0.15 else kind}
    if rng.random() < 0.7:
        made["description"] = text(rng, special, 1, 4)
    if kind == "string" and rng.random() < 0.4:
        made["enum"] = rng.sample(["red", "green", "it's", "\"b\"", "ö"], 2)
    if kind == "array" and rng.random() < 0.8:
        made["items"] = schema(rng, special, depth + 1)
    if kind == "object":
        made |= fields(rng, special, depth + 1)
    if rng.random() < 0.2:
        made["default"] = value(rng, special, 3)
    if rng.random() < 0.1:
        made["nullable"] = True
    if rng.random() < 0.05:
        return {"anyOf": [{"type": "string"}, {"type": "null"}]} if rng.random() < 0.5 else {"description": "of any type"}
    return made


def fields(rng, special, depth=0):
    names = rng.sample(KEYS, rng.randint(0, 3))
    made = {"properties": {name: schema(rng, special, depth) for name in names}}
    if rng.random() < 0.6:
        made["required"] = [name for name in names if rng.random() < 0.5]
    return made


def tool(rng, special):
    function = {"name": rng.choice(["weather", "find_it", "code", "f"]), "description": text(rng, special, 1)}
    if rng.random() < 0.9:
        function["parameters"] = {"type": "object", **fields(rng, special)}
    if rng.random() < 0.1:
        function["return"] = {"type": "string", "description": "words"}
    if rng.random() < 0.1:
        function["strict"] = True
    return {"type": "function", "function": function} if rng.random() < 0.9 else function


def call(rng, special):
    arguments = {key: value(rng, special) for key in rng.sample(KEYS, rng.randint(0, 3))}
    function = {"name": rng.choice(["weather", "find_it", "code"]), "arguments": arguments if rng.random() < 0.8 else '{"n": 1}'}
    if rng.random() < 0.1:
        return function
    return {"id": rng.choice(["abcdefgh1", "abcdefgh2", "call_1", "functions.code:0"]), "type": "function", "function": function}


def parts(rng, special):
    made = [{"type": "text", "text": text(rng, special)} for _ in range(rng.randint(0, 2))]
    if rng.random() < 0.3:
        made.insert(rng.randint(0, len(made)), {"type": "image"})
    return made


def content(rng, special, least=0):
    return parts(rng, special) if rng.random() < 0.04 else text(rng, special, least)


def said(rng, special):
    """A message of the assistant."""
    message = {"role": "assistant", "content": content(rng, special)}
    if rng.random() < 0.3:
        message["tool_calls"] = [call(rng, special) for _ in range(rng.choice([1, 1, 1, 2]))]
        message["content"] = rng.choice(["", None, None, message["content"]])
        if message["content"] is None and rng.random() < 0.3:
            del message["content"]
    elif rng.random() < 0.15:
        message["tool_calls"] = rng.choice([None, []])
    if rng.random() < 0.15:
        message[rng.choice(["reasoning_content", "thinking", "reasoning"])] = rng.choice([None, text(rng, special), text(rng, special)])
    return message


def result(rng, special, asked):
    message = {"role": "tool", "content": content(rng, special)}
    if rng.random() < 0.8:
        message["tool_call_id"] = asked.get("id", "abcdefgh1")
    if rng.random() < 0.5:
        message["name"] = asked.get("function", asked)["name"]
    return message


def plain(rng, special):
    """Users and the assistant in turns, as all templates take them."""
    made = [{"role": "system", "content": text(rng, special)}] if rng.random() < 0.4 else []
    for _ in range(rng.randint(1, 4) if rng.random() < 0.9 else rng.randint(5, 14)):
        made += [{"role": role, "content": text(rng, special)} for role in ("user", "assistant")]
    return made + [{"role": "user", "content": text(rng, special)}] * (rng.random() < 0.2)


def messages(rng, special):
    if rng.random() < 0.35:
        return plain(rng, special)
    made = [{"role": rng.choice(["system"] * 9 + ["developer"]), "content": content(rng, special)}] if rng.random() < 0.5 else []
    if rng.random() < 0.06:
        made.append(said(rng, special))
    for _ in range(rng.randint(1, 3) if rng.random() < 0.95 else rng.randint(4, 9)):
        made.append({"role": "user", "content": content(rng, special)})
        answer = said(rng, special)
        made.append(answer)
        if answer.get("tool_calls") and rng.random() < 0.9:
            made += [result(rng, special, asked) for asked in answer["tool_calls"]]
            if rng.random() < 0.8:
                made.append({"role": "assistant", "content": text(rng, special)})
    if rng.random() < 0.25:
        made += [{"role": "user", "content": text(rng, special)} for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.03:
        made.insert(rng.randint(0, len(made)), {"role": rng.choice(["critic", "system"]), "content": text(rng, special)})
    if rng.random() < 0.05:
        rng.choice(made)["name"] = None
    return made


def chat(rng, special):
    """A chat as an object: the messages, and what else a template is to see."""
    made = {"messages": messages(rng, special)}
    if rng.random() < 0.03:  # the names that other tools have for the assistant
        other = rng.choice(["model", "gpt"])
        made["messages"] = [{**one, "role": one["role"].replace("assistant", other)} for one in made["messages"]]
    if rng.random() < 0.45:
        made["tools"] = [tool(rng, special) for _ in range(rng.randint(1, 2))] if rng.random() < 0.9 else rng.choice([[], None])
    if rng.random() < 0.2:
        made["documents"] = [{"title": text(rng, special), "text": text(rng, special)} for _ in range(rng.randint(1, 2))]
    for name, choices in [("add_generation_prompt", [True, True, False]), ("enable_thinking", [True, False]), ("date_string", ["1 May 2025"]),
                          ("reasoning_effort", ["low", "high"]), ("builtin_tools", [["code", "find_it"]]), ("thinking_budget", [0, 512, -1])]:
        if rng.random() < 0.15:
            made[name] = rng.choice(choices)
    return made
