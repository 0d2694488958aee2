//! Blocks `generation` of templates: what the assistant says. Jinja has no such tag.

use super::ChatText;
use crate::text::TextError;
use minijinja::{Error, State, Value as Jinja, value::Kwargs};
use serde_json::Value;

/// What stands around the parts of a text that the assistant has said, until they are found. Unicode keeps them for private use.
const MARKS: [char; 2] = ['\u{10F8E0}', '\u{10F8E1}'];
/// Refuses a value of a chat that has marks in it.
pub(super) fn check_unmarked(value: &Value) -> Result<(), TextError> {
    let is_marked = match value {
        Value::String(text) => text.contains(MARKS),
        Value::Array(values) => return values.iter().try_for_each(check_unmarked),
        Value::Object(fields) => {
            fields.values().try_for_each(check_unmarked)?;
            fields.keys().any(|name| name.contains(MARKS))
        }
        _ => false,
    };
    if is_marked {
        return Err(TextError::Chat(format!("it has one of the characters {MARKS:?}, which mark parts of a chat")));
    }
    Ok(())
}

/// Takes the marks out of a text. Their places are the learned parts.
pub(super) fn unmarked(marked: &str) -> Result<ChatText, TextError> {
    let (mut text, mut learned, mut start) = (String::with_capacity(marked.len()), Vec::new(), None);
    for piece in marked.split_inclusive(MARKS) {
        let Some(rest) = piece.strip_suffix(MARKS) else {
            text.push_str(piece);
            continue;
        };
        text.push_str(rest);
        start = match (piece.ends_with(MARKS[0]), start) {
            (true, None) => Some(text.len()),
            (false, Some(start)) => {
                learned.push(start..text.len());
                None
            }
            _ => return Err(TextError::Chat("a block `generation` of the template is in another one".into())),
        };
    }
    Ok(ChatText { text, learned })
}

/// The function that a block `generation` calls.
pub(super) const CALL: &str = "__generation__";

/// Writes the body of a block, with marks around it.
pub(super) fn called(state: &mut State, kwargs: Kwargs) -> Result<Jinja, Error> {
    let body = kwargs.get::<Jinja>("caller")?.call(state, &[])?;
    Ok(Jinja::from_safe_string(format!("{}{body}{}", MARKS[0], MARKS[1])))
}

/// Makes calls of the blocks `generation`, a tag that Jinja does not have. All else of the tags stays, so what is stripped around them
/// does too. Also tells whether there are such blocks.
pub(super) fn with_calls(template: &str) -> (String, bool) {
    let (mut made, mut rest, mut has_blocks) = (String::with_capacity(template.len()), template, false);
    while let Some((before, tag)) = rest.split_once("{%") {
        made.push_str(before);
        made.push_str("{%");
        let (inside, behind) = tag.split_once("%}").unwrap_or((tag, ""));
        let call = match inside.trim_matches(['-', '+']).trim() {
            "generation" => inside.replace("generation", &format!("call {CALL}()")),
            "endgeneration" => inside.replace("endgeneration", "endcall"),
            _ => {
                rest = tag;
                continue;
            }
        };
        has_blocks = true;
        made.push_str(&call);
        made.push_str("%}");
        rest = behind;
    }
    made.push_str(rest);
    (made, has_blocks)
}

#[cfg(test)]
mod tests {
    use crate::text::ChatTemplate;
    use serde_json::json;

    #[test]
    fn blocks_and_white_space_around_them_are_as_in_jinja() {
        let template = ChatTemplate::new(
            "{% for message in messages %}\n  {{- message.role }}:\n  {% if message.role == 'assistant' %}\n    {% generation %}\n\
             {{ message.content }}!\n    {%- endgeneration %}\n\n  {% else %}\n{{ message.content }}\n  {% endif %}\n{% endfor %}\n",
        )
        .unwrap();
        let chat = json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "assistant", "content": "ccc"},
        ]);
        let chat = template.render(&chat).unwrap();
        assert_eq!(chat.text, "user:\na\nassistant:\nb!\nassistant:\nccc!\n");
        let parts: Vec<_> = chat.learned.iter().map(|part| &chat.text[part.clone()]).collect();
        assert_eq!(parts, ["b!", "ccc!"]);
    }

    #[test]
    fn a_chat_with_a_mark_in_it_is_refused() {
        let template = ChatTemplate::new("{% generation %}{{ messages[0].content }}{% endgeneration %}").unwrap();
        let error = template.render(&json!([{"role": "assistant", "content": "a\u{10F8E1}b"}])).unwrap_err();
        assert!(error.to_string().contains("mark parts of a chat"), "{error}");
        assert!(template.render(&json!([])).is_err() && template.render(&json!({"text": "a"})).is_err());
    }
}
