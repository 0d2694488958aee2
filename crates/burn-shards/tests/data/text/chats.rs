//! Tokenisers of Hugging Face, and chats. `.ci/differential` compares chats with `transformers`.

use crate::write::jsonl;
use burn::data::dataset::Dataset;
use burn_shards::{ChatTemplate, HfTokenizer, Rows, TextError, TokenRow, Tokenize};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Writes a tokeniser with a token for each byte, by the letters that stand for bytes in such files, and some of its own.
pub(super) fn bytes_and(folder: &Path, more: &[&str]) -> PathBuf {
    let is_plain = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let others = (0..256).filter(|byte| !is_plain(byte)).zip(256..);
    let letters = (0..256).filter(is_plain).map(|byte| (byte, byte)).chain(others);
    let vocab: serde_json::Map<String, Value> =
        letters.map(|(byte, letter)| (char::from_u32(letter).unwrap().to_string(), byte.into())).collect();
    let added = more.iter().zip(256..).map(|(token, id)| {
        json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
    });
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
    let file = json!({
        "version": "1.0", "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": null, "added_tokens": added.collect::<Vec<_>>(), "normalizer": null, "pre_tokenizer": level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": more[0], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {more[0]: {"id": more[0], "ids": [256], "tokens": [more[0]]}},
        },
        "decoder": level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []},
    });
    let path = folder.join("tokenizer.json");
    fs::write(&path, file.to_string()).unwrap();
    path
}

#[derive(Deserialize)]
struct Doc {
    text: String,
}

fn tokens<I>(tokenizer: &impl Tokenize<I>, row: &I) -> TokenRow {
    let mut tokens = TokenRow::default();
    tokenizer.tokenize(row, &mut tokens).unwrap();
    tokens
}

#[test]
fn a_text_is_tokenised_whole_with_the_special_tokens_that_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = bytes_and(folder.path(), &["<s>", "</s>"]);
    let open = || HfTokenizer::open(&path).unwrap();
    assert_eq!((open().vocabulary(), open().token("</s>"), open().token("no")), (258, Some(257), None));
    let doc = Doc { text: "é, a b".into() };
    let whole = open().column(|doc: &Doc| &doc.text);
    let bytes = [256, 0xC3, 0xA9, 44, 32, 97, 32, 98];
    assert_eq!(tokens(&whole, &doc), bytes.to_vec().into(), "nothing is cut off at the 4 tokens that the file says");
    let bare = open().with_special_tokens(false).with_end("</s>").unwrap().column(|doc: &Doc| &doc.text);
    assert_eq!(tokens(&bare, &doc).tokens, [&bytes[1..], &[257]].concat());
    assert_ne!(whole.fingerprint(), bare.fingerprint());
    assert_eq!(whole.fingerprint(), open().column(|doc: &Doc| &doc.text).fingerprint());
    assert!(matches!(open().with_end("no"), Err(TextError::NoSuchToken(_))));
    let first = whole.fingerprint();
    bytes_and(folder.path(), &["<s>", "</t>"]);
    assert_ne!(open().column(|doc: &Doc| &doc.text).fingerprint(), first, "another vocabulary");
    fs::write(&path, "{}").unwrap();
    let error = HfTokenizer::open(&path).unwrap_err();
    assert!(error.to_string().contains("tokenizer.json"), "{error}");
}

#[derive(Deserialize, Serialize)]
struct Message {
    role: String,
    content: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Chat {
    messages: Vec<Message>,
}

const BLOCKS: &str = "{{ bos_token }}{% for message in messages %}{{ message.role }}{% if message.name is defined %}({{ message.name }}){% endif %}:\
    {% if message.role == 'assistant' %}{% generation %}{{ message.content }}{{ eos_token }}{% endgeneration %}\
    {% else %}{{ message.content }}{{ eos_token }}{% endif %}{% endfor %}";

#[test]
fn the_loss_counts_what_the_assistant_says() {
    let folder = tempfile::tempdir().unwrap();
    let vocabulary = bytes_and(folder.path(), &["<s>", "</s>"]);
    let line = r#"{"messages": [{"role": "u", "content": "a", "name": "x"}, {"role": "assistant", "content": "é<"}, {"role": "u", "content": "b"}]}"#;
    let path = jsonl(folder.path(), &[line]);
    let config = json!({"chat_template": BLOCKS, "bos_token": "<s>", "eos_token": {"content": "</s>", "special": true}, "add_bos_token": true});
    fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    let open = |name| ChatTemplate::open(folder.path().join(name));
    let chats = |template| HfTokenizer::open(&vocabulary).unwrap().chats(template, |row: &Chat| &row.messages);
    let rows = Rows::<Chat>::jsonl(path).open().unwrap();

    let tokenizer = chats(open("tokenizer_config.json").unwrap());
    let row = tokens(&tokenizer, &rows.get(0).unwrap());
    let text = "\u{0}u(x):a\u{1}assistant:é<\u{1}u:b\u{1}";
    let token = |byte: u8| if byte < 2 { 256 + u32::from(byte) } else { byte.into() };
    assert_eq!(row.tokens, text.bytes().map(token).collect::<Vec<_>>());
    let learned: Vec<usize> = (0..row.len()).filter(|place| row.is_learned(*place)).collect();
    let start = text.find('é').unwrap();
    assert_eq!(learned, (start..start + "é<".len() + 1).collect::<Vec<_>>(), "with the end token, and no other");
    assert_eq!(rows.tokenized(tokenizer).get(0).unwrap(), row);

    // A template in a file of its own is the one, whichever file is named.
    let fingerprint = chats(open("tokenizer_config.json").unwrap()).fingerprint();
    fs::write(folder.path().join("chat_template.jinja"), BLOCKS.replace(':', ";")).unwrap();
    let both = ["tokenizer_config.json", "chat_template.jinja"].map(|name| chats(open(name).unwrap()).fingerprint());
    assert!(both[0] == both[1] && both[0] != fingerprint);
    fs::remove_file(folder.path().join("chat_template.jinja")).unwrap();
    let named = json!({"chat_template": [{"name": "tool_use", "template": "x"}, {"name": "default", "template": "y"}]});
    fs::write(folder.path().join("tokenizer_config.json"), named.to_string()).unwrap();
    let chat = json!([{"role": "u", "content": ""}]);
    assert_eq!(open("tokenizer_config.json").unwrap().render(&chat).unwrap().text, "y");
    fs::write(folder.path().join("tokenizer_config.json"), "{}").unwrap();
    assert!(open("tokenizer_config.json").unwrap_err().to_string().contains("no `chat_template`"));

    // Without its special tokens a template would make other tokens.
    fs::write(folder.path().join("chat_template.jinja"), BLOCKS).unwrap();
    fs::write(folder.path().join("tokenizer_config.json"), b"{\"bos_token\": \"<s>\", \"name\": \"\xe9\"}").unwrap();
    let error = open("chat_template.jinja").unwrap_err().to_string();
    assert!(error.contains("tokenizer_config.json"), "{error}");
    fs::remove_file(folder.path().join("tokenizer_config.json")).unwrap();
    open("chat_template.jinja").unwrap();
    assert!(ChatTemplate::new("{% for %}").is_err());
}

#[test]
fn a_chat_that_the_template_refuses_is_an_error_with_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let vocabulary = bytes_and(folder.path(), &["<s>"]);
    let path = jsonl(folder.path(), &[r#"{"messages": [{"role": "u", "content": "a"}]}"#, r#"{"messages": []}"#]);
    let template = ChatTemplate::new("{{ raise_exception('no ' ~ messages[0].role) }}").unwrap();
    let tokenizer = HfTokenizer::open(vocabulary).unwrap().chats(template, |row: &Chat| &row.messages);
    let rows = Rows::<Chat>::jsonl(path).open().unwrap().tokenized(tokenizer);
    let errors: Vec<String> = (0..2).map(|row| format!("{:?}", rows.get(row).unwrap_err())).collect();
    assert!(errors[0].contains("no u") && errors[0].contains("row: 0"), "{}", errors[0]);
    assert!(errors[1].contains("no messages") && errors[1].contains("row: 1"), "{}", errors[1]);
}

#[test]
fn chats_with_tools_have_a_template_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("tokenizer_config.json");
    let open = || ChatTemplate::open(&config);
    let write =
        |templates: serde_json::Value| fs::write(&config, json!({"chat_template": templates}).to_string()).unwrap();
    let ask = json!([{"role": "user", "content": ""}]);
    let chats = [
        json!({"messages": ask}),
        json!({"messages": ask, "tools": null}),
        json!({"messages": ask, "tools": [{"a": 1}]}),
    ];
    let texts = || {
        let template = open().unwrap();
        chats.each_ref().map(|chat| template.render(chat).map(|chat| chat.text).map_err(|error| error.to_string()))
    };
    let right = |texts: [&str; 3]| texts.map(|text| Ok(text.to_string()));

    write(
        json!([{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t{{ tools | length }}"}, {"name": "rag", "template": "{% if"}]),
    );
    assert_eq!(texts(), right(["d", "d", "t1"]));
    let both = open().unwrap();
    write(json!([{"name": "default", "template": "d"}]));
    assert_eq!(texts(), right(["d", "d", "d"]));
    write(json!([{"name": "tool_use", "template": "t"}]));
    let texts_of_one = texts();
    assert!(
        texts_of_one[0].as_ref().unwrap_err().contains("`default`") && texts_of_one[2] == Ok("t".into()),
        "{texts_of_one:?}"
    );

    // Files of their own, as `transformers` saves them.
    fs::create_dir(folder.path().join("additional_chat_templates")).unwrap();
    fs::write(folder.path().join("additional_chat_templates/tool_use.jinja"), "T").unwrap();
    fs::write(folder.path().join("chat_template.jinja"), "D").unwrap();
    assert_eq!(texts(), right(["D", "D", "T"]));
    // Both are in the name for saved lengths, and a variable is seen by both.
    let vocabulary = bytes_and(folder.path(), &["<s>"]);
    let name =
        |template| HfTokenizer::open(&vocabulary).unwrap().chats(template, |row: &serde_json::Value| row).fingerprint();
    assert_ne!(name(open().unwrap()), name(both));
    fs::write(folder.path().join("additional_chat_templates/tool_use.jinja"), "T{{ x }}").unwrap();
    assert_eq!(open().unwrap().with("x", "y").render(&chats[2]).unwrap().text, "Ty");
}

#[test]
fn a_chat_of_which_nothing_is_learned_is_an_error_of_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let vocabulary = bytes_and(folder.path(), &["<s>"]);
    let chat = |role: &str| {
        format!(r#"{{"messages": [{{"role": "user", "content": "a"}}, {{"role": "{role}", "content": "b"}}]}}"#)
    };
    let path = jsonl(folder.path(), &[&chat("assistant"), &chat("gpt"), &chat("user")]);
    let template = ChatTemplate::new("{% for m in messages %}{{ m.content }}{% endfor %}").unwrap();
    let tokenizer = HfTokenizer::open(vocabulary).unwrap().chats(template, |row: &Chat| &row.messages);
    let rows = Rows::<Chat>::jsonl(path).open().unwrap().tokenized(tokenizer);
    assert_eq!(rows.get(0).unwrap().learned, [false, true]);
    let error = |row| format!("{:?}", rows.get(row).unwrap_err());
    assert!(
        error(1).contains("nothing of it is learned") && error(1).contains("`gpt`") && error(1).contains("row: 1"),
        "{}",
        error(1)
    );
    assert!(error(2).contains("nothing of it is learned"), "{}", error(2));
}
