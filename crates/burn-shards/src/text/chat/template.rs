//! Chat templates, as `transformers` applies them.

use super::{
    ChatText,
    blocks::{CALL, MARKS, called, unmarked, with_calls},
    json::tojson,
};
use crate::{
    files,
    magic::no_other,
    text::{TextError, special::Special},
};
use chrono::NaiveDate;
use minijinja::{Environment, Error, ErrorKind, Value as Jinja, syntax::SyntaxConfig, value::Serde};
use minijinja_contrib::pycompat;
use serde::Serialize;
use serde_json::{Map, Value};
use std::{fmt::Write, io, path::Path, sync::Arc};

const NAME: &str = "chat";

/// A chat template in Jinja, as the file of a tokeniser has it.
///
/// ```
/// use burn_shards::ChatTemplate;
/// use serde_json::json;
///
/// let template = ChatTemplate::new(
///     "{% for message in messages %}<|{{ message.role }}|>{% generation %}{{ message.content }}{% endgeneration %}{% endfor %}",
/// )?;
/// let chat = template.render(&json!([{"role": "assistant", "content": "Hello"}]))?;
/// assert_eq!(chat.text, "<|assistant|>Hello");
/// assert_eq!(&chat.text[chat.learned[0].clone()], "Hello");
/// # Ok::<(), burn_shards::TextError>(())
/// ```
///
/// It is rendered as `transformers` does, with the same filters, functions and methods of Python's values.
///
/// The loss counts what the assistant says: what the template writes in blocks `{% generation %}`. A template without such blocks
/// is rendered message by message. What an assistant's message adds to the text, behind the prompt for it, is learned. If the text
/// before a message changes with what follows it, the chat is an error: such a template needs the blocks.
#[derive(Clone, derive_more::Debug)]
pub struct ChatTemplate {
    #[debug(skip)]
    jinja: Environment<'static>,
    source: Arc<str>,
    /// Whether the template has blocks `generation`.
    has_blocks: bool,
    /// What the template sees besides the chat.
    variables: Map<String, Value>,
    date: Option<NaiveDate>,
}

impl ChatTemplate {
    /// Opens a `tokenizer_config.json` or a `chat_template.jinja`. Each is read with the other one beside it, if that is there: the
    /// first tells the special tokens, and the second the template, which the first may have too. Special tokens that
    /// `special_tokens_map.json` beside it tells, or the padding of `tokenizer.json`, are those that `transformers` takes.
    ///
    /// # Errors
    /// If a file cannot be read, there is no template, or it is not one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TextError> {
        let path = path.as_ref();
        let wrong = |source| TextError::Tokenizer { path: path.into(), source };
        let read = |name| {
            let path = path.with_file_name(name);
            match files::read_text(&path).and_then(no_other) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(TextError::Tokenizer { path, source: error.into() }),
                Ok(file) => Ok(Some(file)),
            }
        };
        let file = files::read_text(path).and_then(no_other).map_err(|error| wrong(error.into()))?;
        let (template, config) = match path.extension().is_some_and(|ending| ending == "json") {
            true => (read("chat_template.jinja")?, Some(file)),
            false => (Some(file), read("tokenizer_config.json")?),
        };
        let config = serde_json::from_str(config.as_deref().unwrap_or("{}"));
        let config: Map<String, Value> = config.map_err(|error| wrong(error.into()))?;
        let template = template.or_else(|| Some(named_default(config.get("chat_template")?)?.into()));
        let template = template.ok_or_else(|| wrong("it has no `chat_template`".into()))?;
        let mut made = Self::new(&template)?;
        made.variables.extend(Special::of(path, config)?.names());
        Ok(made)
    }

    /// Makes a template of its text.
    ///
    /// # Errors
    /// If it is no template.
    pub fn new(template: &str) -> Result<Self, TextError> {
        let source = with_calls(template);
        let has_blocks = source != template;
        let wrong = |error: Error| TextError::Template(error.into());
        let mut jinja = Environment::new();
        jinja.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(wrong)?);
        jinja.set_unknown_method_callback(pycompat::unknown_method_callback);
        jinja.add_filter("tojson", tojson);
        jinja.add_function("raise_exception", refuse);
        let undated = "the template writes the date of the day, and each day has other tokens: set one by `with_date`";
        jinja.add_function("strftime_now", |_: String| refuse(undated.into()));
        jinja.add_function(CALL, called);
        jinja.add_template_owned(NAME, source).map_err(wrong)?;
        let made = Self { jinja, source: template.into(), has_blocks, variables: Map::new(), date: None };
        Ok(made.with("tools", Value::Null).with("documents", Value::Null).with(PROMPT, false))
    }

    /// Sets a variable of the template, such as `enable_thinking` or a special token.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the date that `strftime_now` writes, such as `2026-11-26`. Without it, a template that calls it is an error: its tokens
    /// would be others each day.
    ///
    /// # Errors
    /// If it is no date.
    pub fn with_date(mut self, date: &str) -> Result<Self, TextError> {
        let date: NaiveDate = date.parse().map_err(|error| TextError::Chat(format!("{date} is no date: {error}")))?;
        self.jinja.add_function("strftime_now", move |format: String| {
            let mut text = String::new();
            let no_format = |_| Error::new(ErrorKind::InvalidOperation, format!("`{format}` is no format of dates"));
            write!(text, "{}", date.and_time(chrono::NaiveTime::MIN).format(&format)).map_err(no_format)?;
            Ok::<_, Error>(text)
        });
        self.date = Some(date);
        Ok(self)
    }

    /// A text that is another one wherever the result is.
    pub(in crate::text) fn fingerprint(&self) -> String {
        format!("template {}, {}, {:?}", self.source, Value::Object(self.variables.clone()), self.date)
    }

    /// Writes a chat as text. `chat` is a list of messages, or an object with a list `messages`; then the template sees all else of the
    /// object too, such as `tools`. A message is an object with `role` and whatever the template asks for; its fields that are null
    /// are left out.
    ///
    /// # Errors
    /// If there are no messages, if the template refuses them, or if it cannot tell what the assistant says.
    pub fn render(&self, chat: &(impl Serialize + ?Sized)) -> Result<ChatText, TextError> {
        let chat = serde_json::to_value(chat).map_err(|error| TextError::Chat(error.to_string()))?;
        let mut seen = self.variables.clone();
        match chat {
            Value::Object(fields) => seen.extend(fields),
            messages => drop(seen.insert(MESSAGES.into(), messages)),
        }
        let messages = match seen.get_mut(MESSAGES) {
            Some(Value::Array(messages)) if !messages.is_empty() => messages,
            _ => return Err(TextError::Chat("it has no messages".into())),
        };
        messages.iter_mut().for_each(clean);
        if self.has_blocks {
            if seen.values().any(|value| value.to_string().contains(MARKS)) {
                let problem = format!("it has one of the characters {MARKS:?}, which mark parts of a chat");
                return Err(TextError::Chat(problem));
            }
            return unmarked(&self.text(&seen)?);
        }
        let messages = messages.clone();
        let mut upto = |count: usize, prompts: bool| {
            seen.insert(MESSAGES.into(), messages[..count].into());
            seen.insert(PROMPT.into(), prompts.into());
            self.text(&seen)
        };
        let (text, mut learned) = (upto(messages.len(), false)?, Vec::new());
        for (at, _) in messages.iter().enumerate().filter(|(_, message)| message["role"] == "assistant") {
            let before = if at == 0 { String::new() } else { upto(at, true)? };
            let here = upto(at + 1, false)?;
            if !here.starts_with(&before) || !text.starts_with(&here) {
                return Err(TextError::Chat(format!(
                    "the template writes what is before message {at} in another way once it has that message, or those behind it, so \
                     nothing tells what the assistant says: put {{% generation %}} and {{% endgeneration %}} around that in the template"
                )));
            }
            learned.push(before.len()..here.len());
        }
        Ok(ChatText { text, learned })
    }

    fn text(&self, seen: &Map<String, Value>) -> Result<String, TextError> {
        let text = self.jinja.get_template(NAME).and_then(|template| template.render(Serde(seen)));
        text.map_err(|error| TextError::Template(error.into()))
    }
}

/// The names by which a template sees the messages, and whether it is to end with a prompt for the assistant.
const MESSAGES: &str = "messages";
const PROMPT: &str = "add_generation_prompt";

/// The template of a `chat_template`: it is a text, or a list of templates with names.
fn named_default(templates: &Value) -> Option<&str> {
    let named = || templates.as_array()?.iter().find(|one| one["name"] == "default")?["template"].as_str();
    templates.as_str().or_else(named)
}

/// The function `raise_exception` of templates.
fn refuse(problem: String) -> Result<Jinja, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, problem))
}

/// Takes away what is null, and names what a model has thought as `transformers` does.
fn clean(message: &mut Value) {
    let Value::Object(fields) = message else { return };
    fields.retain(|_, value| !value.is_null());
    if let Some(thought) =
        ["reasoning_content", "thinking", "reasoning"].iter().find_map(|name| fields.get(*name).cloned())
    {
        fields.insert("reasoning_content".into(), thought.clone());
        fields.entry("thinking").or_insert(thought);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parts(chat: &ChatText) -> Vec<&str> {
        chat.learned.iter().map(|part| &chat.text[part.clone()]).collect()
    }

    #[test]
    fn without_blocks_it_is_what_a_message_adds_behind_its_prompt() {
        let text = "{{ bos_token }}{% for message in messages %}<{{ message.role }}>{{ message.content | trim }}</>{% endfor %}\
                    {% if add_generation_prompt %}<assistant>{% endif %}";
        let template = ChatTemplate::new(text).unwrap().with("bos_token", "^");
        let chat = json!({"messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": " b"},
            {"role": "user", "content": "c"},
            {"role": "assistant", "content": "d"},
        ]});
        let chat = template.render(&chat).unwrap();
        assert_eq!(chat.text, "^<user>a</><assistant>b</><user>c</><assistant>d</>");
        assert_eq!(parts(&chat), ["b</>", "d</>"]);
    }

    #[test]
    fn a_template_that_rewrites_what_was_said_is_an_error_without_blocks() {
        let text = "{% for message in messages %}{% if loop.last %}LAST {% endif %}{{ message.content }}|{% endfor %}";
        let error = ChatTemplate::new(text)
            .unwrap()
            .render(&json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]))
            .unwrap_err();
        assert!(error.to_string().contains("message 1") && error.to_string().contains("{% generation %}"), "{error}");
    }

    #[test]
    fn functions_filters_and_methods_are_those_of_transformers() {
        let text = "{% for message in messages %}{% if message.role == 'bad' %}{{ raise_exception('no ' ~ message.role) }}{% endif %}\
                    {% if message.content is defined %}{{ message.content.strip().split(' ')[0] }}{% endif %}\
                    {% if tools is not none %}{{ tools | tojson }}{% continue %}{% endif %}.{% endfor %}";
        let template = ChatTemplate::new(text).unwrap();
        let said = |chat: Value| template.render(&chat).map(|chat| chat.text).map_err(|error| error.to_string());
        assert_eq!(
            said(json!([{"role": "user", "content": " a b "}, {"role": "user", "content": null}])).unwrap(),
            "a.."
        );
        let tools = json!({"messages": [{"role": "user", "content": "x"}], "tools": [{"b": 1, "a": "<é>"}]});
        assert_eq!(said(tools).unwrap(), "x[{\"b\": 1, \"a\": \"<é>\"}]");
        assert!(said(json!([{"role": "bad"}])).unwrap_err().contains("no bad"));
    }

    #[test]
    fn a_date_is_one_that_is_set() {
        let template = ChatTemplate::new("{{ strftime_now('%d %b %Y') }}").unwrap();
        let chat = json!([{"role": "user", "content": ""}]);
        assert!(template.render(&chat).unwrap_err().to_string().contains("with_date"));
        let dated = template.clone().with_date("2026-11-06").unwrap();
        assert_eq!(dated.render(&chat).unwrap().text, "06 Nov 2026");
        assert!(template.clone().with_date("today").is_err());
        assert_ne!(dated.fingerprint(), template.fingerprint());
        assert_ne!(template.clone().with("enable_thinking", false).fingerprint(), template.fingerprint());
    }
}
