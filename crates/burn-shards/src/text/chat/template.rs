//! Chat templates, as `transformers` applies them.

use super::{
    ChatText,
    blocks::{self, MARKS, Message, unmarked},
    filters,
    learned::Growing,
    methods,
    source::TemplateSource,
};
use crate::{
    source::magic::no_other,
    system::files,
    text::{TextError, special::SpecialTokens},
};
use chrono::NaiveDate;
use minijinja::{Environment, Error, ErrorKind, Value as Jinja, syntax::SyntaxConfig, value::Serde};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
    io,
    path::Path,
};

/// The names of the template of all chats, and of the one of chats with tools.
const DEFAULT: &str = "default";
const TOOL_USE: &str = "tool_use";
/// The suffix of the name of a template without blocks that also writes the places of messages.
const PLACES: &str = ", places";

/// A chat template in Jinja, as in the files of a tokeniser.
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
/// It renders chats as `transformers` does, with the same filters, functions and methods of Python values.
///
/// The loss counts what the assistant says: what the template writes in `{% generation %}` blocks. Without such blocks, it is what an
/// assistant's message adds to the text after the prompt for it. If the text before a message depends on what follows it, the chat is an
/// error: such a template needs the blocks.
///
/// If there are several templates, a chat with `tools` uses the one named `tool_use`, and other chats use `default`.
#[derive(Clone, derive_more::Debug)]
pub struct ChatTemplate {
    #[debug(skip)]
    jinja: Environment<'static>,
    /// The templates by their names.
    sources: BTreeMap<String, String>,
    /// The fields of messages that the templates test for none.
    asked: HashSet<String>,
    /// What the template sees besides the chat.
    variables: Map<String, Value>,
    date: Option<NaiveDate>,
}

impl ChatTemplate {
    /// Opens a `tokenizer_config.json` or a `chat_template.jinja`. If the other one is beside it, both are read: the first has the special
    /// tokens, and the second the template, which may also be in the first. The special tokens of `special_tokens_map.json` and the padding
    /// of `tokenizer.json` beside it are used as in `transformers`.
    ///
    /// # Errors
    /// If a file cannot be read, or if there is no valid template.
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
        let mut templates: BTreeMap<String, String> = template.into_iter().map(|one| (DEFAULT.into(), one)).collect();
        if let Some(template) = read("additional_chat_templates/tool_use.jinja")? {
            templates.insert(TOOL_USE.into(), template);
        }
        if templates.is_empty() {
            templates = named(config.get("chat_template").unwrap_or_default());
        }
        if templates.is_empty() {
            return Err(wrong("it has no `chat_template`".into()));
        }
        let mut made = Self::of(templates)?;
        made.variables.extend(SpecialTokens::of(path, config)?.names());
        Ok(made)
    }

    /// Makes a template from its text.
    ///
    /// # Errors
    /// If the text is not a valid template.
    pub fn new(template: &str) -> Result<Self, TextError> {
        Self::of(BTreeMap::from([(DEFAULT.into(), template.into())]))
    }

    fn of(sources: BTreeMap<String, String>) -> Result<Self, TextError> {
        let wrong = |error: Error| TextError::Template(error.into());
        let mut jinja = Environment::new();
        jinja.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(wrong)?);
        jinja.set_unknown_method_callback(methods::call);
        filters::add(&mut jinja);
        blocks::add(&mut jinja);
        let undated = "the template writes the date of the day, and each day has other tokens: set one by `with_date`";
        jinja.add_function("strftime_now", move |_: String| {
            Err::<Jinja, _>(Error::new(ErrorKind::InvalidOperation, undated))
        });
        let mut asked = HashSet::new();
        for name in [DEFAULT, TOOL_USE] {
            let Some(text) = sources.get(name) else { continue };
            // Jinja2 makes one form of all ends of lines.
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            let source = TemplateSource::new(&text);
            asked.extend(source.asks_for_none());
            jinja.add_template_owned(name, source.written(false)).map_err(wrong)?;
            if !source.has_blocks() {
                jinja.add_template_owned(format!("{name}{PLACES}"), source.written(true)).map_err(wrong)?;
            }
        }
        let made = Self { jinja, sources, asked, variables: Map::new(), date: None };
        Ok(made.with("tools", Value::Null).with("documents", Value::Null).with(PROMPT, false))
    }

    /// Sets a variable of the template, such as `enable_thinking` or a special token.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the date that `strftime_now` writes, such as `2026-11-26`. Without it, a template that calls `strftime_now` is an error,
    /// because its tokens would change each day.
    ///
    /// # Errors
    /// If `date` is not a date.
    pub fn with_date(mut self, date: &str) -> Result<Self, TextError> {
        let date: NaiveDate = date.parse().map_err(|error| TextError::Chat(format!("{date} is no date: {error}")))?;
        self.jinja.add_function("strftime_now", move |format: String| {
            let mut text = String::new();
            let no_format = |_| Error::new(ErrorKind::InvalidOperation, format!("`{format}` is no format of dates"));
            // A date has no time zone, and Python writes none.
            let format = format.replace("%Z", "").replace("%z", "");
            write!(text, "{}", date.and_time(chrono::NaiveTime::MIN).format(&format)).map_err(no_format)?;
            Ok::<_, Error>(text)
        });
        self.date = Some(date);
        Ok(self)
    }

    /// A text that differs whenever the result may differ.
    pub(in crate::text) fn fingerprint(&self) -> String {
        format!("templates {:?}, {}, {:?}", self.sources, Value::Object(self.variables.clone()), self.date)
    }

    /// Writes a chat as text. `chat` is a list of messages, or an object with a list `messages`; the template then also sees the other
    /// fields of the object, such as `tools`. A message is an object with `role` and whatever else the template uses. Null fields of a
    /// message are removed, except `content` and fields that the template tests for none.
    ///
    /// # Errors
    /// If there are no messages; if the template refuses them; if it is unclear what the assistant says; or if there is nothing for the
    /// loss, although there are messages of the assistant or of an unknown role.
    pub fn render(&self, chat: &(impl Serialize + ?Sized)) -> Result<ChatText, TextError> {
        let chat = serde_json::to_value(chat).map_err(|error| TextError::Chat(error.to_string()))?;
        let mut seen = self.variables.clone();
        match chat {
            Value::Object(fields) => seen.extend(fields),
            messages => drop(seen.insert(MESSAGES.into(), messages)),
        }
        let Some(Value::Array(messages)) =
            seen.get_mut(MESSAGES).filter(|messages| **messages != Value::Array(Vec::new()))
        else {
            return Err(TextError::Chat("it has no messages".into()));
        };
        let messages: Vec<Value> = messages.drain(..).map(|message| self.cleaned(message)).collect();
        let name = self.name(&seen)?;
        let list = |messages: &[Value]| messages.iter().map(|message| Jinja::from(Serde(message))).collect();
        let write = |messages: &[Value], prompts| self.text(name, &seen, list(messages), Some(prompts));
        let whole = || self.text(name, &seen, list(&messages), None);
        let places = format!("{name}{PLACES}");
        let written = if self.jinja.get_template(&places).is_ok() {
            let numbered = messages
                .iter()
                .enumerate()
                .map(|(number, message)| Jinja::from_object(Message { number, fields: Jinja::from(Serde(message)) }));
            // A template that fails on messages with numbers has no places.
            let marked = self.text(&places, &seen, numbered.collect(), None).unwrap_or_default();
            Growing { messages: &messages, write }.learned(whole()?, &marked)?
        } else {
            if seen.values().chain(&messages).any(|value| value.to_string().contains(MARKS)) {
                let problem = format!("it has one of the characters {MARKS:?}, which mark parts of a chat");
                return Err(TextError::Chat(problem));
            }
            unmarked(&whole()?)?
        };
        written.checked(&messages)
    }

    /// The name of the template for a chat.
    fn name(&self, seen: &Map<String, Value>) -> Result<&'static str, TextError> {
        let has_tools = seen.get("tools").is_some_and(|tools| !tools.is_null());
        let wanted = [TOOL_USE, DEFAULT].into_iter().skip(usize::from(!has_tools));
        wanted.into_iter().find(|name| self.sources.contains_key(*name)).ok_or_else(|| {
            let names: Vec<_> = self.sources.keys().collect();
            TextError::Chat(format!(
                "of the templates {names:?} none is for it: name one `{DEFAULT}`, and one for chats with tools `{TOOL_USE}`, or write \
                 one into `chat_template.jinja`"
            ))
        })
    }

    /// Writes messages, with a prompt for the assistant or without, or as the variables say.
    fn text(
        &self,
        name: &str,
        seen: &Map<String, Value>,
        messages: Vec<Jinja>,
        prompts: Option<bool>,
    ) -> Result<String, TextError> {
        let mut all: BTreeMap<&str, Jinja> =
            seen.iter().map(|(name, value)| (&**name, Jinja::from(Serde(value)))).collect();
        all.insert(MESSAGES, messages.into());
        all.extend(prompts.map(|prompts| (PROMPT, prompts.into())));
        let text = self.jinja.get_template(name).and_then(|template| template.render(all));
        text.map_err(|error| TextError::Template(error.into()))
    }

    /// Removes null fields, and names a model's reasoning as `transformers` does.
    fn cleaned(&self, message: Value) -> Value {
        let Value::Object(mut fields) = message else { return message };
        fields.retain(|name, value| !value.is_null() || name == "content" || self.asked.contains(name));
        let thought = ["reasoning_content", "thinking", "reasoning"].iter().find_map(|name| fields.get(*name));
        if let Some(thought) = thought.filter(|thought| !thought.is_null()).cloned() {
            let mut all = Map::from_iter([("thinking".to_string(), thought.clone())]);
            all.extend(fields);
            all.insert("reasoning_content".into(), thought);
            fields = all;
        }
        Value::Object(fields)
    }
}

/// The names by which a template sees the messages, and whether it is to end with a prompt for the assistant.
const MESSAGES: &str = "messages";
const PROMPT: &str = "add_generation_prompt";

/// The templates of a `chat_template`: a text, or a list of named templates.
fn named(templates: &Value) -> BTreeMap<String, String> {
    let one = |name: &Value, template: &Value| Some((name.as_str()?.to_string(), template.as_str()?.to_string()));
    match templates {
        Value::Array(all) => all.iter().filter_map(|each| one(&each["name"], &each["template"])).collect(),
        template => one(&DEFAULT.into(), template).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

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
        assert_eq!(said(json!([{"role": "user", "content": " a b "}, {"role": "user"}])).unwrap(), "a..");
        let tools = json!({"messages": [{"role": "user", "content": "x"}], "tools": [{"b": 1, "a": "<é>"}]});
        assert_eq!(said(tools).unwrap(), "x[{\"b\": 1, \"a\": \"<é>\"}]");
        assert!(said(json!([{"role": "bad"}])).unwrap_err().contains("no bad"));
    }

    /// The text of a chat whose messages are these.
    fn text(template: &str, messages: Value) -> String {
        ChatTemplate::new(template).unwrap().render(&messages).unwrap().text
    }

    #[test]
    fn null_is_kept_where_a_template_can_ask_for_it() {
        let call = json!([{"type": "function", "function": {"name": "get", "arguments": {"a": null}}}]);
        let chat =
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": call}]);
        let calls = "{% for m in messages %}{% if m['role'] == 'assistant' and m['content'] is none %}<call>\
                     {% for c in m['tool_calls'] %}{{ c['function'] | tojson }}{% endfor %}</call>{% endif %}{% endfor %}";
        assert_eq!(text(calls, chat.clone()), "<call>{\"name\": \"get\", \"arguments\": {\"a\": null}}</call>");
        assert_eq!(text("{% for m in messages %}{{ '<' ~ m.content ~ '>' }}{% endfor %}", chat.clone()), "<a><None>");
        assert_eq!(text("{% for m in messages %}{{ m.content | trim }}.{% endfor %}", chat.clone()), "a.None.");
        let added = ChatTemplate::new("{% for m in messages %}{{ m.content + '.' }}{% endfor %}").unwrap();
        assert!(added.render(&chat).is_err());

        let chat = json!([{"role": "assistant", "content": "b", "tool_calls": null, "name": null}]);
        for asks in ["is not none", "!= none", "!= None"] {
            let asked = format!(
                "{{% for m in messages %}}{{% if m.tool_calls {asks} %}}calls{{% endif %}}{{{{ m.content }}}}{{% endfor %}}"
            );
            assert_eq!(text(&asked, chat.clone()), "b", "{asks}");
        }
        // A template that does not ask has no such field, as of `transformers`.
        let unasked = "{% for m in messages %}{% if 'tool_calls' in m or m.name is defined %}calls{% endif %}{{ m.content }}{% endfor %}";
        assert_eq!(text(unasked, chat), "b");
    }

    #[test]
    fn thoughts_have_the_names_and_the_order_of_transformers() {
        let names = "{% for m in messages %}{{ m | tojson }}{% endfor %}";
        assert_eq!(
            text(names, json!([{"role": "assistant", "reasoning": "r", "thinking": null, "content": "b"}])),
            "{\"thinking\": \"r\", \"role\": \"assistant\", \"reasoning\": \"r\", \"content\": \"b\", \"reasoning_content\": \"r\"}"
        );
    }

    const CHATML: &str = "{% for m in messages %}{{ count() }}<{{ m.role }}>{{ m.content }}</>{% endfor %}\
                          {% if add_generation_prompt %}<assistant>{% endif %}";

    /// How often a template without blocks writes a chat, and what is learned of it.
    fn counted(template: &str, messages: &[Value]) -> (usize, Vec<String>) {
        let count = Arc::new(AtomicUsize::new(0));
        let mut template =
            ChatTemplate::new(&template.replacen("{{ count() }}", "{% if loop.first %}{{ count() }}{% endif %}", 1))
                .unwrap();
        let counter = Arc::clone(&count);
        template.jinja.add_function("count", move || {
            counter.fetch_add(1, Ordering::Relaxed);
            ""
        });
        let chat = template.render(messages).unwrap();
        (count.load(Ordering::Relaxed), parts(&chat).into_iter().map(String::from).collect())
    }

    #[test]
    fn a_long_chat_is_written_no_more_often_than_a_short_one() {
        let chat = |turns: usize| -> Vec<Value> {
            let turn = |turn: usize| {
                let call = turn.is_multiple_of(3).then(|| json!({"role": "tool", "content": "t"}));
                [
                    Some(json!({"role": "user", "content": "a"})),
                    call,
                    Some(json!({"role": "assistant", "content": turn.to_string()})),
                ]
            };
            (0..turns).flat_map(turn).flatten().collect()
        };
        let (few, _) = counted(CHATML, &chat(4));
        let (many, learned) = counted(CHATML, &chat(400));
        assert_eq!(few, many, "writings of 4 and of 400 answers");
        assert!(many < 12, "{many} writings");
        let right: Vec<_> = (0..400).map(|turn| format!("{turn}</>")).collect();
        assert_eq!(learned, right);
    }

    #[test]
    fn a_template_whose_places_do_not_tell_is_written_for_each_answer() {
        let chat: Vec<Value> = (0..4)
            .flat_map(|_| [json!({"role": "user", "content": "a"}), json!({"role": "assistant", "content": "b"})])
            .collect();
        for template in [
            // No loop has the messages, a loop is cut, the end of a message comes before the next one, a message has two places.
            "{% for i in range(messages | length) %}{{ count() }}<{{ messages[i].role }}>{{ messages[i].content }}</>{% endfor %}\
             {% if add_generation_prompt %}<assistant>{% endif %}",
            "{% set all %}{% for m in messages %}{{ count() }}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% endset %}\
             {{ all[:1] }}{{ all[1:] }}{% if add_generation_prompt %}<assistant>{% endif %}",
            "{% for m in messages %}{{ count() }}<{{ m.role }}>{{ m.content }}</>{% if not loop.last %}{% endif %}{% endfor %}\
             {% if add_generation_prompt %}<assistant>{% endif %}",
            "{% for m in messages %}{{ count() }}<{{ m.role }}>{% endfor %}{% for m in messages %}{{ m.content }}</>{% endfor %}",
        ] {
            let whole = ChatTemplate::new(&template.replace("{{ count() }}", "")).unwrap().render(&chat);
            match whole {
                Ok(whole) => assert_eq!(parts(&whole), ["b</>"; 4], "{template}"),
                Err(error) => assert!(error.to_string().contains("{% generation %}"), "{error}"),
            }
        }
    }

    #[test]
    fn a_prompt_that_is_wanted_is_written() {
        let template = CHATML.replace("{{ count() }}", "");
        let chat = json!({
            "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
            "add_generation_prompt": true,
        });
        let written = ChatTemplate::new(&template).unwrap().render(&chat).unwrap();
        assert_eq!(
            (written.text.as_str(), parts(&written)),
            ("<user>a</><assistant>b</><user>c</><assistant>", vec!["b</>"])
        );
        let with = ChatTemplate::new(&template).unwrap().with(PROMPT, true);
        assert_eq!(with.render(&chat["messages"]).unwrap(), written);
    }

    #[test]
    fn an_answer_that_is_changed_later_is_an_error() {
        let text = "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content is defined and loop.last %}({{ m.reasoning_content }})\
                    {% endif %}{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
        let template = ChatTemplate::new(text).unwrap();
        let mut chat: Vec<Value> = (0..5)
            .flat_map(|turn| {
                [json!({"role": "user", "content": "a"}), json!({"role": "assistant", "content": turn.to_string()})]
            })
            .collect();
        chat[9]["reasoning_content"] = "r".into();
        assert_eq!(parts(&template.render(&chat).unwrap())[4], "(r)4</>");
        chat[5]["reasoning_content"] = "r".into();
        let error = template.render(&chat).unwrap_err().to_string();
        assert!(error.contains("message 5") && error.contains("{% generation %}"), "{error}");
    }

    #[test]
    fn a_chat_that_begins_with_the_assistant_learns_no_header() {
        let chat = json!([
            {"role": "assistant", "content": "hi"},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
        ]);
        for (begin, right) in [("", ["hi</>", "b</>"]), ("{{ '^' }}", ["hi</>", "b</>"])] {
            let template = ChatTemplate::new(&format!("{begin}{}", CHATML.replace("{{ count() }}", ""))).unwrap();
            assert_eq!(parts(&template.render(&chat).unwrap()), right);
            assert_eq!(parts(&template.render(&json!([chat[0]])).unwrap()), right[..1]);
        }
        // The header of the first message has the start of the text in it.
        let llama = "{% for m in messages %}{% set t = '<' ~ m.role ~ '>' ~ m.content ~ '</>' %}{% if loop.first %}{% set t = '^' ~ t %}{% endif %}\
                     {{ t }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
        let written = ChatTemplate::new(llama).unwrap().render(&chat).unwrap();
        assert_eq!(
            (written.text.as_str(), parts(&written)),
            ("^<assistant>hi</><user>a</><assistant>b</>", vec!["hi</>", "b</>"])
        );
        // Nothing tells where the prompt ends.
        let untold = ChatTemplate::new(
            "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}?{% endif %}",
        )
        .unwrap();
        assert!(untold.render(&chat).unwrap_err().to_string().contains("message 0"));
    }

    #[test]
    fn a_chat_of_which_nothing_is_learned_is_an_error_that_says_so() {
        let plain = ChatTemplate::new("{% for m in messages %}{{ m.content }}{% endfor %}").unwrap();
        for role in ["model", "gpt"] {
            let error = plain
                .render(&json!([{"role": "user", "content": "a"}, {"role": role, "content": "b"}]))
                .unwrap_err()
                .to_string();
            assert!(error.contains("nothing of it is learned") && error.contains(&format!("`{role}`")), "{error}");
        }
        let never = ChatTemplate::new(
            "{% for m in messages %}{% if m.role == 'bot' %}{% generation %}{{ m.content }}{% endgeneration %}\
                                       {% else %}{{ m.content }}{% endif %}{% endfor %}",
        )
        .unwrap();
        let chat = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]);
        let error = never.render(&chat).unwrap_err().to_string();
        assert!(error.contains("{% generation %}"), "{error}");
        // A block in a comment is none.
        let comment =
            ChatTemplate::new("{# {% generation %} #}{% for m in messages %}{{ m.content }}{% endfor %}").unwrap();
        assert_eq!(parts(&comment.render(&chat).unwrap()), ["b"]);
        // Questions alone are a text.
        assert_eq!(plain.render(&json!([{"role": "user", "content": "a"}])).unwrap().text, "a");
    }

    #[test]
    fn a_date_is_one_that_is_set() {
        let template = ChatTemplate::new("{{ strftime_now('%d %b %Y') }}").unwrap();
        let chat = json!([{"role": "user", "content": ""}]);
        assert!(template.render(&chat).unwrap_err().to_string().contains("with_date"));
        let dated = template.clone().with_date("2026-11-06").unwrap();
        assert_eq!(dated.render(&chat).unwrap().text, "06 Nov 2026");
        let zoned = ChatTemplate::new("{{ strftime_now('%-d%Z') }}").unwrap().with_date("2026-11-06").unwrap();
        assert_eq!(zoned.render(&chat).unwrap().text, "6");
        assert!(template.clone().with_date("today").is_err());
        assert_ne!(dated.fingerprint(), template.fingerprint());
        assert_ne!(template.clone().with("enable_thinking", false).fingerprint(), template.fingerprint());
    }
}
