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

/// The day that `strftime_now` writes.
const DATE: &str = "2026-11-06";

pub(crate) fn check(entry: &Entry) -> Result<(), String> {
    let folder = &entry.paths[0];
    let file = folder.join("chat_template.jinja");
    let file = if file.exists() { file } else { folder.join("tokenizer_config.json") };
    let opened = ChatTemplate::open(file).and_then(|template| template.with_date(DATE));
    let template = opened.map_err(|error| format!("it does not open: {error}"))?;
    let tokenizer = HfTokenizer::open(folder.join("tokenizer.json")).map_err(|error| error.to_string())?;
    let lines = fs::read_to_string(folder.join("chats.jsonl")).expect("chats");
    let known: Vec<Known> = lines.lines().map(|line| serde_json::from_str(line).expect("a chat")).collect();
    let chats = InMemDataset::new(known.iter().map(|known| known.chat.clone()).collect());
    let rows = Tokenized::new(chats, tokenizer.chats(template.clone(), |chat: &Value| chat));
    let differ = |(number, known): (usize, &Known)| {
        let problem = compare(&template, &rows, number, known).err()?;
        Some(format!("\n  chat {number}: {problem}\n    chat  {}", known.chat))
    };
    let differing: Vec<String> = known.iter().enumerate().filter_map(differ).collect();
    if differing.is_empty() {
        Ok(())
    } else {
        Err(format!("{} of {} chats{}", differing.len(), known.len(), differing.concat()))
    }
}

fn compare(template: &ChatTemplate, rows: &impl Dataset<TokenRow>, number: usize, known: &Known) -> Result<(), String> {
    let wrong = |what: &str, is: String, right: String| Err(format!("{what}\n    is    {is}\n    right {right}"));
    let written = match (template.render(&known.chat), &known.text) {
        (Ok(written), Some(text)) if written.text == *text => written,
        (Ok(written), Some(text)) => return wrong("the text", format!("{:?}", written.text), format!("{text:?}")),
        (Ok(written), None) => {
            return wrong("it is taken", format!("{:?}", written.text), format!("{:?}", known.refused));
        }
        (Err(_), None) => return Ok(()),
        // Nothing tells what is learned, or nothing is.
        (Err(error), Some(_)) if known.mask.as_ref().is_none_or(|mask| !mask.contains(&1)) => {
            let told = error.to_string().contains("what the assistant says") || error.to_string().contains("learned");
            return if told { Ok(()) } else { wrong("the error", error.to_string(), "one of what is learned".into()) };
        }
        (Err(error), Some(text)) => return wrong("it is refused", error.to_string(), format!("{text:?}")),
    };
    let is_answer =
        |message: &Value| ["user", "system", "developer", "tool"].iter().all(|role| message["role"] != *role);
    let has_answer = known.chat["messages"].as_array().expect("messages").iter().any(is_answer);
    if has_answer && known.mask.as_ref().is_some_and(|mask| !mask.contains(&1)) {
        return wrong("it is taken", format!("{written:?}"), "an error: nothing is learned".into());
    }
    let Some(mask) = &known.mask else {
        // Of answers in the middle, the places in the text may tell what growth does not. The first and the last are always looked at.
        let answers =
            known.chat["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "assistant");
        let (answers, parts) = (answers.count(), &written.learned);
        let are_in_order = parts.windows(2).all(|two| two[0].end <= two[1].start);
        if answers > 2 && parts.len() == answers && are_in_order {
            return Ok(());
        }
        return wrong("it tells what is learned", format!("{written:?}"), "an error".into());
    };
    let row: TokenRow = rows.get(number).map_err(|error| error.to_string())?;
    let learned: Vec<u8> = (0..row.len()).map(|place| row.is_learned(place).into()).collect();
    if row.tokens != known.tokens {
        return wrong("the tokens", format!("{:?}", row.tokens), format!("{:?}", known.tokens));
    }
    if learned != *mask {
        return wrong("what is learned", format!("{learned:?} of {written:?}"), format!("{mask:?}"));
    }
    Ok(())
}
