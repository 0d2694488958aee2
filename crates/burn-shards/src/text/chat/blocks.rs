//! Blocks `generation` of templates: what the assistant says. Jinja has no such tag.

use super::ChatText;
use crate::text::TextError;
use minijinja::{Error, State, Value as Jinja, value::Kwargs};

/// What stands around the parts of a text that the assistant has said, until they are found. Unicode keeps them for private use.
pub(super) const MARKS: [char; 2] = ['\u{10F8E0}', '\u{10F8E1}'];
/// The function that a block `generation` calls.
pub(super) const CALL: &str = "__generation__";

/// Writes the body of a block, with marks around it.
pub(super) fn called(state: &mut State, kwargs: Kwargs) -> Result<Jinja, Error> {
    let body = kwargs.get::<Jinja>("caller")?.call(state, &[])?;
    Ok(Jinja::from_safe_string(format!("{}{body}{}", MARKS[0], MARKS[1])))
}

/// Takes the marks out of a text. Their places are the learned parts.
pub(super) fn unmarked(marked: &str) -> Result<ChatText, TextError> {
    let (mut text, mut learned) = (String::with_capacity(marked.len()), Vec::new());
    for (number, piece) in marked.split(MARKS).enumerate() {
        let start = text.len();
        text.push_str(piece);
        if number % 2 == 1 {
            learned.push(start..text.len());
        }
    }
    // Each part begins with the first mark, and ends with the second.
    let marks = marked.chars().filter(|letter| MARKS.contains(letter));
    if !marks.eq(MARKS.into_iter().cycle().take(2 * learned.len())) {
        return Err(TextError::Chat("a block `generation` of the template is in another one".into()));
    }
    Ok(ChatText { text, learned })
}

/// Makes calls of the blocks `generation`, a tag that Jinja does not have. All else of the tags stays, so what is stripped around them
/// does too.
pub(super) fn with_calls(template: &str) -> String {
    let mut pieces = template.split("{%");
    let mut made = pieces.next().unwrap_or_default().to_string();
    for tag in pieces {
        let name = tag.split("%}").next().unwrap_or_default().trim_matches(['-', '+']).trim();
        made.push_str("{%");
        match name {
            "generation" => made.push_str(&tag.replacen(name, &format!("call {CALL}()"), 1)),
            "endgeneration" => made.push_str(&tag.replacen(name, "endcall", 1)),
            _ => made.push_str(tag),
        }
    }
    made
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
