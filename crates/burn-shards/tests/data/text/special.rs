//! What a tokeniser takes from its files: special tokens, the size of its vocabulary, and no chance.

use super::chats::bytes_and;
use burn::data::dataset::{Dataset, InMemDataset};
use burn_shards::{ChatTemplate, HfTokenizer, TokenRow, Tokenized};
use serde_json::{Value, json};
use std::{fs, path::Path};

fn write(folder: &Path, name: &str, file: &Value) {
    fs::write(folder.join(name), file.to_string()).unwrap();
}

/// The tokens of a text by the tokeniser of a folder, without those around it.
fn tokens(folder: &Path, text: &str) -> Vec<u32> {
    let tokenizer = HfTokenizer::open(folder.join("tokenizer.json")).unwrap().with_special_tokens(false);
    let texts = InMemDataset::new(vec![text.to_string()]);
    Tokenized::new(texts, tokenizer.column(|text: &String| text)).get(0).unwrap().tokens
}

/// What a template sees under some names.
fn seen(folder: &Path, names: &[&str]) -> Vec<String> {
    let template: String = names.iter().map(|name| format!("{{{{ {name} }}}}|")).collect();
    fs::write(folder.join("chat_template.jinja"), template).unwrap();
    let template = ChatTemplate::open(folder.join("chat_template.jinja")).unwrap();
    let text = template.render(&json!([{"role": "user", "content": ""}])).unwrap().text;
    text.split('|').take(names.len()).map(String::from).collect()
}

#[test]
fn templates_see_the_special_tokens_of_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    bytes_and(folder, &["<s>", "</s>"]);
    let token = |text: &str| json!({"content": text, "lstrip": false, "normalized": false, "rstrip": false, "single_word": false});
    write(
        folder,
        "special_tokens_map.json",
        &json!({"bos_token": "<s>", "eos_token": token("</s>"), "sep_token": null}),
    );
    assert_eq!(seen(folder, &["bos_token", "eos_token", "unk_token"]), ["<s>", "</s>", ""]);
    // It counts more than the newer file for the names that all have, and less for others.
    let config = json!({
        "bos_token": "<b>", "sep_token": "<sep>", "cls_token": token("<cls>"), "image_token": "<i>", "add_bos_token": true,
        "audio_token": {"__type": "AddedToken", "content": "<audio>"}, "mask_token": null,
    });
    write(folder, "tokenizer_config.json", &config);
    let older = json!({"bos_token": "<s>", "sep_token": null, "image_token": "<j>", "video_token": "<v>", "extra_special_tokens": {"boi": "<boi>"}});
    write(folder, "special_tokens_map.json", &older);
    let names = [
        "bos_token",
        "sep_token",
        "cls_token",
        "image_token",
        "audio_token",
        "video_token",
        "boi",
        "mask_token",
        "add_bos_token",
    ];
    assert_eq!(seen(folder, &names), ["<s>", "", "<cls>", "<i>", "<audio>", "<v>", "<boi>", "", ""]);
    // With the newer list of tokens it counts no more.
    let config = json!({
        "bos_token": "<b>", "added_tokens_decoder": {"256": {"content": "<s>", "special": true}},
        "extra_special_tokens": {"image_token": "<i>", "eoi": {"__type": "AddedToken", "content": "<eoi>"}},
    });
    write(folder, "tokenizer_config.json", &config);
    assert_eq!(
        seen(folder, &["bos_token", "image_token", "eoi", "video_token", "boi"]),
        ["<b>", "<i>", "<eoi>", "", ""]
    );
    write(
        folder,
        "tokenizer_config.json",
        &json!({"model_specific_special_tokens": {"boi": "<boi>"}, "extra_special_tokens": ["<x>"]}),
    );
    fs::remove_file(folder.join("special_tokens_map.json")).unwrap();
    assert_eq!(seen(folder, &["boi"]), ["<boi>"]);
    // The padding of the tokeniser names a token too.
    let mut file: Value = serde_json::from_slice(&fs::read(folder.join("tokenizer.json")).unwrap()).unwrap();
    file["padding"] = json!({"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": null, "pad_id": 256,
        "pad_type_id": 0, "pad_token": "<s>"});
    write(folder, "tokenizer.json", &file);
    assert_eq!(seen(folder, &["pad_token"]), ["<s>"]);
    write(folder, "tokenizer_config.json", &json!({"pad_token": null}));
    assert_eq!(seen(folder, &["pad_token"]), [""]);
    fs::write(folder.join("special_tokens_map.json"), "[]").unwrap();
    let error = ChatTemplate::open(folder.join("chat_template.jinja")).unwrap_err().to_string();
    assert!(error.contains("special_tokens_map.json"), "{error}");
}

#[test]
fn a_tokeniser_has_the_special_tokens_of_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = bytes_and(folder, &["<s>", "</s>"]);
    let bytes = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
    assert_eq!(tokens(folder, "a<x>"), bytes("a<x>"));
    let fingerprint = || {
        let tokenizer = HfTokenizer::open(&path).unwrap();
        burn_shards::Tokenize::<String>::fingerprint(&tokenizer.column(|text: &String| text))
    };
    let bare = fingerprint();
    for config in [
        json!({"added_tokens_decoder": {"999": {"content": "<x>", "special": true}}}),
        json!({"extra_special_tokens": ["<x>"]}),
        json!({"additional_special_tokens": ["</s>", {"__type": "AddedToken", "content": "<x>"}]}),
        json!({"extra_special_tokens": [], "additional_special_tokens": ["<x>"]}),
        json!({"extra_special_tokens": {"image_token": "<x>"}}),
        json!({"image_token": "<x>", "bos_token": "<s>"}),
        json!({"eos_token": "<x>"}),
    ] {
        write(folder, "tokenizer_config.json", &config);
        assert_eq!(tokens(folder, "a<x>b"), [97, 258, 98], "{config}");
        assert_eq!(HfTokenizer::open(&path).unwrap().vocabulary(), 259, "{config}");
        assert_ne!(fingerprint(), bare, "{config}");
    }
    for none in [
        json!({}),
        json!({"extra_special_tokens": null, "additional_special_tokens": null}),
        json!({"bos_token": "<s>"}),
    ] {
        write(folder, "tokenizer_config.json", &none);
        assert_eq!((tokens(folder, "a<x>b"), fingerprint()), (bytes("a<x>b"), bare.clone()), "{none}");
    }
    write(folder, "special_tokens_map.json", &json!({"additional_special_tokens": ["<x>"], "unk_token": "<y>"}));
    assert_eq!(tokens(folder, "<x><y>"), [259, 258], "names come first");
    write(folder, "added_tokens.json", &json!({"<z>": 300, "</s>": 257}));
    assert_eq!(tokens(folder, "<x><y><z>"), [260, 259, 258], "numbers come before names");
    write(folder, "tokenizer_config.json", &json!({"added_tokens_decoder": {}}));
    assert_eq!(tokens(folder, "<x>"), bytes("<x>"), "the older files count no more");
    // A token of another file may take white space with it.
    let left = json!({"added_tokens_decoder": {"257": {"content": "</s>", "lstrip": true, "normalized": false, "special": true}}});
    write(folder, "tokenizer_config.json", &left);
    assert_eq!(tokens(folder, "a  </s>"), [97, 257]);
    // A file of another name is read alone.
    fs::copy(&path, folder.join("other.json")).unwrap();
    assert_eq!(HfTokenizer::open(folder.join("other.json")).unwrap().vocabulary(), 258);
    fs::write(folder.join("tokenizer_config.json"), "{").unwrap();
    let error = HfTokenizer::open(&path).unwrap_err().to_string();
    assert!(error.contains("tokenizer_config.json"), "{error}");
}

/// A tokeniser of whole words.
fn words(folder: &Path, vocabulary: &Value, around: &Value) -> HfTokenizer {
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "decoder": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": around,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    });
    write(folder, "tokenizer.json", &file);
    HfTokenizer::open(folder.join("tokenizer.json")).unwrap()
}

#[test]
fn all_tokens_are_below_the_size_of_the_vocabulary() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let holes = json!({"a": 0, "b": 5, "c": 7, "[UNK]": 9});
    assert_eq!(words(folder, &holes, &Value::Null).vocabulary(), 10);
    assert_eq!(tokens(folder, "c x"), [7, 9]);
    let around = json!({
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [40], "tokens": ["<s>"]}},
    });
    assert_eq!(words(folder, &holes, &around).vocabulary(), 41, "a number that is put around a text");
    write(folder, "tokenizer_config.json", &json!({"bos_token": "<b>"}));
    assert_eq!(words(folder, &holes, &Value::Null).vocabulary(), 10, "a token that is added takes a number between");
    assert_eq!(words(folder, &json!({"[UNK]": 0}), &Value::Null).vocabulary(), 2);
}

#[test]
fn a_text_has_the_same_tokens_each_time_whatever_dropout_the_file_has() {
    let folder = tempfile::tempdir().unwrap();
    let letters = "abcdefgh";
    let mut vocabulary: serde_json::Map<String, Value> =
        letters.chars().zip(0..).map(|(letter, number)| (letter.to_string(), json!(number))).collect();
    vocabulary.extend([
        ("ab".into(), json!(8)),
        ("cd".into(), json!(9)),
        ("abcd".into(), json!(10)),
        ("ef".into(), json!(11)),
    ]);
    let file = |dropout: Value| {
        json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "decoder": null,
            "pre_tokenizer": null, "post_processor": null,
            "model": {"type": "BPE", "dropout": dropout, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
                "fuse_unk": false, "byte_fallback": false, "vocab": vocabulary, "merges": [["a", "b"], ["c", "d"], ["ab", "cd"], ["e", "f"]]},
        })
    };
    let texts: Vec<String> = (0..200).map(|number| letters.repeat(1 + number % 5)).collect();
    for dropout in [json!(null), json!(0.0), json!(0.5), json!(1.0)] {
        write(folder.path(), "tokenizer.json", &file(dropout.clone()));
        let tokenizer = HfTokenizer::open(folder.path().join("tokenizer.json")).unwrap();
        let rows = Tokenized::new(InMemDataset::new(texts.clone()), tokenizer.column(|text: &String| text));
        let lengths = rows.lengths().unwrap();
        for (row, text) in texts.iter().enumerate() {
            let right: Vec<u32> = [10, 11, 6, 7].repeat(text.len() / letters.len());
            assert_eq!(lengths.as_ref()[row] as usize, right.len(), "dropout {dropout}");
            assert_eq!(rows.get(row).unwrap(), TokenRow::from(right), "dropout {dropout}");
        }
    }
}
