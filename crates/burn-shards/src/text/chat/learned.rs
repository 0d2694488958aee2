//! What the assistant says in a chat whose template has no blocks `generation`: what each of its messages adds to the text, behind
//! the prompt for it.

use super::{ChatText, blocks::places, written::ASSISTANT};
use crate::text::TextError;
use serde_json::{Value, json};
use std::{collections::HashMap, ops::Range};

/// A chat, and a template that writes any messages as its messages.
pub(super) struct Growing<'a, W> {
    pub(super) messages: &'a [Value],
    /// Writes messages, with a prompt for the assistant or without.
    pub(super) write: W,
}

impl<W: Fn(&[Value], bool) -> Result<String, TextError>> Growing<'_, W> {
    /// Finds what is learned in the text of all messages. `marked` is that text with the marks of places.
    ///
    /// The parts are found from the places of the messages. Some answers are also written as the last message, to see that the text
    /// before them stays as it is: the first and the last one, the first after each role, and the first other one that the template changes.
    /// Where a place tells another part than that, all are found so.
    pub(super) fn learned(&self, text: String, marked: &str) -> Result<ChatText, TextError> {
        let answers: Vec<usize> = (0..self.messages.len()).filter(|at| self.role(*at) == ASSISTANT).collect();
        let places = places(marked, &text, self.messages.len());
        let quick = places.map(|places| self.by_places(&text, &answers, &places)).transpose()?.flatten();
        let learned = match quick {
            Some(learned) => learned,
            None => answers.iter().map(|at| self.added(*at, &text, 0)).collect::<Result<_, _>>()?,
        };
        Ok(ChatText { text, learned })
    }

    fn role(&self, at: usize) -> &str {
        self.messages[at]["role"].as_str().unwrap_or_default()
    }

    /// The learned parts by the places of the messages. `None` if these do not tell them.
    fn by_places(
        &self,
        text: &str,
        answers: &[usize],
        places: &[Option<Range<usize>>],
    ) -> Result<Option<Vec<Range<usize>>>, TextError> {
        let (mut learned, mut prompts, mut changes) = (Vec::new(), HashMap::new(), false);
        for at in answers {
            let Some(place) = places[*at].clone() else { return Ok(None) };
            let written = &text[place.clone()];
            let before = at.checked_sub(1).map(|before| self.role(before)).unwrap_or_default();
            let is_end = Some(at) == answers.first() || Some(at) == answers.last();
            let is_first_change = !is_end && !changes && !is_whole(&self.messages[*at], written);
            let prompt: Option<&&str> = prompts.get(before).filter(|prompt| written.starts_with(**prompt));
            if let (Some(prompt), false, false) = (prompt, is_end, is_first_change) {
                learned.push(place.start + prompt.len()..place.end);
                continue;
            }
            changes |= is_first_change;
            let part = self.added(*at, text, place.start)?;
            if part.start < place.start || part.end != place.end {
                return Ok(None);
            }
            prompts.entry(before).or_insert(&text[place.start..part.start]);
            learned.push(part);
        }
        Ok(Some(learned))
    }

    /// What a message adds, from the texts that end before it and with it. The first message begins at `begin` or behind.
    fn added(&self, at: usize, text: &str, begin: usize) -> Result<Range<usize>, TextError> {
        let untold = || {
            TextError::Chat(format!(
                "the template writes what is before message {at} in another way once it has that message, or those behind it, so \
                 nothing tells what the assistant says: put {{% generation %}} and {{% endgeneration %}} around that in the template"
            ))
        };
        let refused = |error: TextError| {
            TextError::Chat(format!(
                "the template refuses the messages up to {at} alone, so nothing tells what the assistant says: put \
                 {{% generation %}} and {{% endgeneration %}} around that in the template ({error})"
            ))
        };
        let write = |count: usize, prompts: bool| (self.write)(&self.messages[..count], prompts).map_err(refused);
        let here = write(at + 1, false)?;
        let start = match at {
            0 => {
                let prompt = self.prompt().ok_or_else(untold)?;
                let found = here.get(begin..).and_then(|here| here.find(&prompt)).ok_or_else(untold)?;
                begin + found + prompt.len()
            }
            _ => {
                let before = write(at, true)?;
                here.starts_with(&before).then_some(before.len()).ok_or_else(untold)?
            }
        };
        if text.starts_with(&here) { Ok(start..here.len()) } else { Err(untold()) }
    }

    /// The prompt for the assistant behind the first message of a chat that begins with the assistant.
    fn prompt(&self) -> Option<String> {
        let messages = [self.messages[0].clone(), json!({"role": "user", "content": "a"})];
        let [bare, asked] = [false, true].map(|prompts| (self.write)(&messages, prompts));
        Some(asked.ok()?.strip_prefix(&bare.ok()?)?.into())
    }
}

/// Whether all that a message says is in the text that was written of it.
fn is_whole(message: &Value, written: &str) -> bool {
    let has = |said: &Value| said.as_str().is_none_or(|said| written.contains(said.trim()));
    let all = |said: &Value| match said {
        Value::Array(parts) => parts.iter().all(|part| has(&part["text"])),
        said => has(said),
    };
    all(&message["content"]) && all(&message["reasoning_content"])
}
