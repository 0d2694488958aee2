//! Chats as text and as tokens, with what the loss counts.

use crate::manifest::Entry;
use burn::data::dataset::{Dataset, InMemDataset};
use burn_pinned::data::{ChatTemplate, HfTokenizer, TokenRow, Tokenized};
use serde::Deserialize;
use serde_json::Value;
use std::fs;

/// A chat and what `transformers` makes of it.
#[derive(Deserialize)]
struct Known {
    chat: Value,
    text: Option<String>,
    #[serde(default)]
    tokens: Vec<u32>,
    /// `None` where the template has no blocks, and writes what was said in another way later.
    mask: Option<Vec<u8>>,
    refused: Option<String>,
}

pub(crate) fn check(entry: &Entry) -> Result<(), String> {
    let folder = &entry.paths[0];
    let template = ChatTemplate::open(folder.join("chat_template.jinja")).map_err(|error| error.to_string())?;
    let tokenizer = HfTokenizer::open(folder.join("tokenizer.json")).map_err(|error| error.to_string())?;
    let lines = fs::read_to_string(folder.join("chats.jsonl")).expect("chats");
    let known: Vec<Known> = lines.lines().map(|line| serde_json::from_str(line).expect("a chat")).collect();
    let chats = InMemDataset::new(known.iter().map(|known| known.chat.clone()).collect());
    let rows = Tokenized::new(chats, tokenizer.chats(template.clone(), |chat: &Value| chat));
    for (number, known) in known.iter().enumerate() {
        let wrong = |what: &str, is: String, right: String| {
            Err(format!("chat {number}: {what}\n    is    {is}\n    right {right}"))
        };
        let written = template.render(&known.chat);
        match (&written, &known.text) {
            (Ok(written), Some(text)) if written.text == *text => {}
            (Err(_), None) => continue,
            (Err(_), Some(_)) if known.mask.is_none() => continue,
            (written, text) => {
                let right = text.as_ref().or(known.refused.as_ref());
                return wrong("the text", format!("{written:?}"), format!("{right:?}"));
            }
        }
        let Some(mask) = &known.mask else { return wrong("it is taken", format!("{written:?}"), "an error".into()) };
        let row: TokenRow = rows.get(number).map_err(|error| error.to_string())?;
        let learned: Vec<u8> = (0..row.len()).map(|place| row.is_learned(place).into()).collect();
        if row.tokens != known.tokens {
            return wrong("the tokens", format!("{:?}", row.tokens), format!("{:?}", known.tokens));
        }
        if learned != *mask {
            return wrong("what is learned", format!("{learned:?}"), format!("{mask:?}"));
        }
    }
    Ok(())
}
