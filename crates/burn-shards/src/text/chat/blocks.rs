//! Marks in a text that a template writes: around what the assistant says, and around each message.

use super::ChatText;
use crate::text::TextError;
use minijinja::{
    Environment, Value as Jinja,
    value::{Enumerator, Object, ObjectRepr},
};
use std::{ops::Range, sync::Arc};

/// What stands around the parts of a text that the assistant has said, until they are found. Unicode keeps them for private use.
pub(super) const MARKS: [char; 2] = ['\u{10F8E0}', '\u{10F8E1}'];
/// What stands around the number of a message where it begins, and where it ends.
const PLACES: [char; 2] = ['\u{10F8E2}', '\u{10F8E3}'];
/// The filter over the body of a block `generation`, and those that write the places of a message.
pub(super) const SAID: &str = "__said__";
pub(super) const BEGINS: &str = "__begins__";
pub(super) const ENDS: &str = "__ends__";

/// Adds the filters that write marks.
pub(super) fn add(jinja: &mut Environment<'static>) {
    jinja.add_filter(SAID, |body: &str| format!("{}{body}{}", MARKS[0], MARKS[1]));
    for (name, mark) in [BEGINS, ENDS].into_iter().zip(PLACES) {
        jinja.add_filter(name, move |_: &str, message: &Jinja| {
            let message = message.downcast_object_ref::<Message>();
            message.map(|message| format!("{mark}{}{mark}", message.number)).unwrap_or_default()
        });
    }
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

/// A message that knows its number, and else is its fields.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) number: usize,
    pub(super) fields: Jinja,
}

impl Object for Message {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        self.fields.get_item(key).ok().filter(|value| !value.is_undefined())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.fields.try_iter().map_or(Enumerator::Empty, |names| Enumerator::Values(names.collect()))
    }
}

/// Where each of `count` messages is in a text, from the text with the marks of places. `None` if that is another text but for
/// the marks, or if a message is at several places.
pub(super) fn places(marked: &str, text: &str, count: usize) -> Option<Vec<Option<Range<usize>>>> {
    let mut places = vec![None; count];
    let (mut plain, mut open) = (String::with_capacity(text.len()), None);
    let mut rest = marked;
    loop {
        let (piece, mark) = match rest.find(PLACES) {
            Some(at) => (&rest[..at], rest[at..].chars().next()),
            None => (rest, None),
        };
        plain.push_str(piece);
        let Some(mark) = mark else { break };
        let (number, behind) = rest[piece.len() + mark.len_utf8()..].split_once(mark)?;
        let number: usize = number.parse().ok()?;
        rest = behind;
        // A message ends where the next one begins, and a loop in a loop ends no other message.
        if mark == PLACES[0] || open.as_ref().is_some_and(|(at, _)| *at == number) {
            keep(&mut places, open.take(), &plain)?;
        }
        if mark == PLACES[0] {
            open = Some((number, plain.len()));
        }
    }
    keep(&mut places, open, &plain)?;
    (plain == text).then_some(places)
}

/// Keeps the place of a message that ends here, if it has any text. `None` if it has a place already.
fn keep(places: &mut [Option<Range<usize>>], open: Option<(usize, usize)>, text: &str) -> Option<()> {
    let Some((number, start)) = open else { return Some(()) };
    if text[start..].trim().is_empty() {
        return Some(());
    }
    let place = places.get_mut(number)?;
    place.replace(start..text.len()).is_none().then_some(())
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
