//! Special tokens from the files beside a `tokenizer.json`, as in `transformers`.

use super::TextError;
use crate::{source::magic::no_other, system::files};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    path::Path,
};
use tokenizers::AddedToken;

pub(super) const TOKENIZER: &str = "tokenizer.json";
const PAD: &str = "pad_token";
const EXTRA: &str = "extra_special_tokens";
/// The names that all tokenisers have.
const COMMON: [&str; 7] = ["bos_token", "eos_token", "unk_token", "sep_token", PAD, "cls_token", "mask_token"];

/// The special tokens of a folder.
#[derive(Debug)]
pub(super) struct SpecialTokens {
    /// Tokens with a name, which templates use.
    named: Vec<(String, ToldToken)>,
    /// Tokens without a name.
    extra: Vec<ToldToken>,
    /// Tokens by id, special or not.
    numbered: BTreeMap<u32, AddedToken>,
    /// Whether these are from a file for older programs. Then the tokeniser's own tokens take precedence for their ids.
    is_older: bool,
}

/// A token as a file describes it.
#[derive(Debug, Clone, PartialEq)]
struct ToldToken {
    token: AddedToken,
    /// Whether it is only a text. The same token as an object counts as another one, and replaces it if it comes later.
    is_text: bool,
}

impl SpecialTokens {
    /// Reads the files beside `path`, each if it is there.
    pub(super) fn beside(path: &Path) -> Result<Self, TextError> {
        Self::of(path, read(path, "tokenizer_config.json")?.unwrap_or_default())
    }

    /// As [`beside`](Self::beside), with this `tokenizer_config.json`.
    pub(super) fn of(path: &Path, mut config: Map<String, Value>) -> Result<Self, TextError> {
        // Files for older programs count only if the newer list is missing.
        let older: Map<String, Value> = match config.contains_key("added_tokens_decoder") {
            true => Map::new(),
            false => read(path, "special_tokens_map.json")?.unwrap_or_default(),
        };
        if ![&config, &older].iter().any(|file| file.contains_key(PAD))
            && let Some(PaddingFile { padding: Some(padding) }) = read(path, TOKENIZER)?
        {
            config.insert(PAD.into(), padding.pad_token.into());
        }
        let (named, extra) = (named(&config, &older), extra(&config, &older));
        let (numbered, is_older) = match config.get("added_tokens_decoder") {
            Some(tokens) => (numbered(tokens), false),
            None => {
                // Plain texts, except those with a common name and listed ones. Objects of the newer file are ignored.
                let is_seen = |told: &ToldToken, name: &str| told.is_text || older.contains_key(name);
                let common = named.iter().filter(|(name, told)| COMMON.contains(&&**name) && is_seen(told, name));
                let listed = extra.iter().filter(|told| told.is_text);
                let special: Vec<&str> =
                    common.map(|(_, told)| told).chain(listed).map(|told| &*told.token.content).collect();
                let token = |(text, number): (String, u32)| {
                    let is_special = special.contains(&&*text);
                    (number, AddedToken::from(text, is_special))
                };
                let tokens: BTreeMap<String, u32> = read(path, "added_tokens.json")?.unwrap_or_default();
                (tokens.into_iter().map(token).collect(), true)
            }
        };
        Ok(Self { named, extra, numbered, is_older })
    }

    /// The names by which templates see tokens, such as `bos_token`.
    pub(super) fn names(&self) -> impl Iterator<Item = (String, Value)> {
        self.named.iter().map(|(name, told)| (name.clone(), told.token.content.clone().into()))
    }

    /// The tokens that must be added to a tokeniser with these tokens, in order.
    pub(super) fn missing(&self, has: &HashMap<u32, AddedToken>) -> Vec<AddedToken> {
        let there: HashSet<&AddedToken> = has.values().collect();
        let is_missing = |(number, token): &(&u32, &AddedToken)| {
            !(self.is_older && has.contains_key(number) || there.contains(token))
        };
        let mut missing: Vec<AddedToken> =
            self.numbered.iter().filter(is_missing).map(|(_, token)| token.clone()).collect();
        let words: HashSet<String> = has.values().chain(&missing).map(|token| token.content.clone()).collect();
        let mut told: Vec<&ToldToken> = Vec::new();
        for one in self.named.iter().map(|(_, told)| told).chain(&self.extra) {
            if !words.contains(&one.token.content) && !told.contains(&one) {
                told.push(one);
            }
        }
        missing.extend(told.into_iter().map(|told| told.token.clone()));
        let is_named = |token: &AddedToken| self.named.iter().any(|(_, told)| told.token.content == token.content);
        missing.iter_mut().filter(|token| is_named(token)).for_each(|token| token.special = true);
        missing
    }
}

/// The settings of padding.
#[derive(Deserialize)]
struct PaddingFile {
    padding: Option<Padding>,
}

#[derive(Deserialize)]
struct Padding {
    pad_token: String,
}

/// Reads a file of JSON beside `path`. `None` if there is none.
fn read<T: for<'de> Deserialize<'de>>(path: &Path, name: &str) -> Result<Option<T>, TextError> {
    let path = path.with_file_name(name);
    let wrong = |source| TextError::Tokenizer { path: path.clone(), source };
    match files::read(&path).and_then(no_other) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(error.into())),
        Ok(file) => serde_json::from_slice(&file).map(Some).map_err(|error| wrong(error.into())),
    }
}

/// A token of a file: a text, or an object with the text and more. A text is a special token.
fn token(value: &Value, is_special: bool) -> Option<ToldToken> {
    let content = value.as_str().or_else(|| value.get("content")?.as_str())?;
    let flag = |name, default| value.get(name).and_then(Value::as_bool).unwrap_or(default);
    let is_special = is_special || value.is_string() || flag("special", false);
    let token = AddedToken::from(content, is_special)
        .normalized(flag("normalized", !is_special))
        .single_word(flag("single_word", false))
        .lstrip(flag("lstrip", false))
        .rstrip(flag("rstrip", false));
    Some(ToldToken { token, is_text: value.is_string() })
}

/// Tokens with names. A later source in this function overrides an earlier one.
fn named(config: &Map<String, Value>, older: &Map<String, Value>) -> Vec<(String, ToldToken)> {
    let mut found = Map::new();
    for name in COMMON {
        found.extend(older.get(name).or_else(|| config.get(name)).map(|value| (name.into(), value.clone())));
    }
    let is_own = |name: &String| name.ends_with("_token") && !COMMON.contains(&&**name);
    let own = |file: &Map<String, Value>, is_text: bool| -> Vec<(String, Value)> {
        let own = file.iter().filter(|(name, value)| is_own(name) && value.is_string() == is_text);
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let named =
        |file: &Map<String, Value>, list| file.get(list).and_then(Value::as_object).cloned().unwrap_or_default();
    found.extend(own(config, false));
    found.extend(own(older, false));
    found.extend(own(older, true));
    let mut explicit: Map<String, Value> = own(config, true).into_iter().collect();
    explicit.extend(named(config, EXTRA));
    if explicit.is_empty() {
        explicit = named(config, "model_specific_special_tokens");
    }
    found.extend(explicit);
    found.extend(named(older, EXTRA));
    let is_older = |name: &String| older.contains_key(name) && COMMON.contains(&&**name);
    let told = |(name, value): (String, Value)| token(&value, is_older(&name)).map(|told| (name, told));
    found.into_iter().filter_map(told).collect()
}

/// Special tokens without names.
fn extra(config: &Map<String, Value>, older: &Map<String, Value>) -> Vec<ToldToken> {
    const BEFORE: &str = "additional_special_tokens";
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let tells_nothing = |value: &Value| match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(names) => names.is_empty(),
        value => value.is_null(),
    };
    // The older name counts if the newer one is missing.
    let (now, before) = (config.get(EXTRA), config.get(BEFORE));
    let is_before = before.is_some() && now.is_none_or(tells_nothing);
    let listed = if is_before { before } else { now }.filter(|listed| !listed.is_object());
    let listed = match older.get(EXTRA) {
        Some(Value::Object(_)) => None,
        Some(more) => Some([list(listed), list(Some(more))].concat()),
        None => listed.map(|listed| list(Some(listed))),
    };
    let all = listed.unwrap_or_else(|| list(older.get(BEFORE).or(before.filter(|_| !is_before))));
    all.iter().filter_map(|value| token(value, false)).collect()
}

/// Tokens with their ids.
fn numbered(tokens: &Value) -> BTreeMap<u32, AddedToken> {
    let tokens = tokens.as_object().into_iter().flatten();
    tokens.filter_map(|(number, value)| Some((number.parse().ok()?, token(value, false)?.token))).collect()
}
