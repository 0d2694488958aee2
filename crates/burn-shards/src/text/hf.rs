//! Tokenisers of Hugging Face, from a `tokenizer.json`.

use super::{
    ChatTemplate, ChatText, TextError, TokenRow, Tokenize,
    special::{SpecialTokens, TOKENIZER},
    tokenizer,
};
use crate::{error::BoxError, source::magic::no_other, system::files};
use fnv::FnvHasher;
use serde::Serialize;
use std::{collections::HashMap, hash::Hasher, path::Path, sync::Arc};
use tokenizers::{AddedToken, ModelWrapper, Tokenizer};

/// A tokeniser of Hugging Face's crate `tokenizers`, from a `tokenizer.json`.
///
/// ```no_run
/// use burn_shards::{HfTokenizer, Rows, TokenRow};
///
/// #[derive(serde::Deserialize)]
/// struct Doc {
///     text: String,
/// }
///
/// let tokenizer = HfTokenizer::open("tokenizer.json")?.with_end("<|endoftext|>")?;
/// let rows = Rows::<Doc>::parquet("docs-*.parquet").open()?.tokenized(tokenizer.column(|doc: &Doc| &doc.text));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It runs on the thread that requests a row, and has no threads of its own. It never truncates, pads or samples at random, whatever the
/// file says, so a row always has the same tokens. A clone shares the vocabulary.
#[derive(Clone, derive_more::Debug)]
pub struct HfTokenizer {
    #[debug("{vocabulary} tokens")]
    tokenizer: Arc<Tokenizer>,
    #[debug(skip)]
    vocabulary: usize,
    /// A hash of the file, and of the special tokens from other files.
    hash: u64,
    special: bool,
    end: Option<u32>,
}

impl HfTokenizer {
    /// Opens a `tokenizer.json`.
    ///
    /// Like `from_pretrained` of `transformers`, it adds special tokens that this file lacks, from `tokenizer_config.json`,
    /// `special_tokens_map.json` and `added_tokens.json` beside it. A file with another name is read alone.
    ///
    /// The dropout of a BPE model is switched off, with a warning in the log. With dropout, a text would have different tokens each time,
    /// and its length would differ from [`Tokenized::lengths`](crate::Tokenized::lengths).
    ///
    /// # Errors
    /// If a file cannot be read or is invalid.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TextError> {
        let path = path.as_ref();
        let wrong = |source| TextError::Tokenizer { path: path.into(), source };
        let file = files::read(path).and_then(no_other).map_err(|error| wrong(error.into()))?;
        let mut tokenizer = Tokenizer::from_bytes(&file).map_err(wrong)?;
        tokenizer.with_truncation(None).map_err(wrong)?.with_padding(None);
        without_dropout(&mut tokenizer, path);
        let mut hasher = FnvHasher::default();
        hasher.write(&file);
        if path.file_name().is_some_and(|name| name == TOKENIZER) {
            let has: HashMap<u32, AddedToken> = tokenizer.get_added_tokens_decoder().into_iter().collect();
            let missing = SpecialTokens::beside(path)?.missing(&has);
            missing.iter().for_each(|token| hasher.write(format!("{token:?}").as_bytes()));
            tokenizer.add_tokens(missing).map_err(wrong)?;
        }
        let vocabulary = size(&tokenizer);
        Ok(Self { tokenizer: Arc::new(tokenizer), vocabulary, hash: hasher.finish(), special: true, end: None })
    }

    /// Sets whether the tokeniser adds the special tokens of its file, such as one at the start of a text. Default: true, as in
    /// `transformers`. Chats never get them, because the template writes them.
    pub fn with_special_tokens(mut self, special: bool) -> Self {
        self.special = special;
        self
    }

    /// Appends this token, such as `<|endoftext|>`, to each text of a column. Default: none. Chats do not get it.
    ///
    /// # Errors
    /// If the vocabulary has no such token.
    pub fn with_end(mut self, token: &str) -> Result<Self, TextError> {
        self.end = Some(self.token(token).ok_or_else(|| TextError::NoSuchToken(token.into()))?);
        Ok(self)
    }

    /// The id of a token, if the vocabulary has it.
    pub fn token(&self, token: &str) -> Option<u32> {
        self.tokenizer.token_to_id(token)
    }

    /// The size of the vocabulary: one more than the largest token id. All ids are below it, even if some are unused.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Tokenises one text of each row.
    pub fn column<I>(self, text: impl for<'a> Fn(&'a I) -> &'a str + Send + Sync) -> impl Tokenize<I> {
        let Self { tokenizer: vocabulary, hash, special, end, .. } = self;
        tokenizer(&format!("tokenizers {hash:016x}, {special}, {end:?}"), move |row: &I, out: &mut TokenRow| {
            out.extend(vocabulary.encode_fast(text(row), special)?.get_ids().iter().copied());
            out.extend(end);
            Ok(())
        })
    }

    /// Tokenises one chat of each row, written by a template. The loss counts what the assistant says: see [`ChatTemplate`].
    ///
    /// ```no_run
    /// use burn_shards::{ChatTemplate, HfTokenizer, Rows, TokenRow};
    ///
    /// #[derive(serde::Deserialize, serde::Serialize)]
    /// struct Message {
    ///     role: String,
    ///     content: String,
    /// }
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Chat {
    ///     messages: Vec<Message>,
    /// }
    ///
    /// let template = ChatTemplate::open("tokenizer_config.json")?;
    /// let tokenizer = HfTokenizer::open("tokenizer.json")?.chats(template, |row: &Chat| &row.messages);
    /// let rows = Rows::<Chat>::parquet("chats-*.parquet").open()?.tokenized(tokenizer);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// `chat` returns what [`ChatTemplate::render`] takes: a list of messages, or a struct with the list `messages` and everything else
    /// that the template needs. A chat with nothing for the loss to count is an error of its row.
    pub fn chats<I, M: Serialize + ?Sized>(
        self,
        template: ChatTemplate,
        chat: impl for<'a> Fn(&'a I) -> &'a M + Send + Sync,
    ) -> impl Tokenize<I> {
        let name = format!("tokenizers {:016x}, {}", self.hash, template.fingerprint());
        tokenizer(&name, move |row: &I, out: &mut TokenRow| {
            let chat = template.render(chat(row))?;
            *out = tokens_of(&self.tokenizer, &chat)?;
            if !out.learned.contains(&true) {
                return Err(TextError::Chat(NOTHING.into()).into());
            }
            Ok(())
        })
    }
}

/// Switches off the dropout of a BPE model. No other kind of model is random.
fn without_dropout(tokenizer: &mut Tokenizer, path: &Path) {
    let ModelWrapper::BPE(model) = tokenizer.get_model() else { return };
    let Some(dropout) = model.dropout.filter(|dropout| *dropout > 0.0) else { return };
    let mut model = model.clone();
    model.dropout = None;
    tokenizer.with_model(model);
    log::warn!(
        "{}: its BPE dropout of {dropout} is switched off, as a text would have other tokens and another length each time",
        path.display()
    );
}

/// One more than the largest token id, including tokens that are put around a text.
fn size(tokenizer: &Tokenizer) -> usize {
    let around = tokenizer.encode_fast("", true).map(|encoding| encoding.get_ids().to_vec()).unwrap_or_default();
    let numbers = tokenizer.get_vocab(true).into_values().chain(around);
    numbers.max().map_or(0, |largest| largest as usize + 1)
}

/// The error of a chat with nothing for the loss.
const NOTHING: &str = "nothing of it is learned, since the assistant says nothing in it: leave it out";

/// The tokens of a chat. The loss counts those that overlap a learned part by at least a byte, as in `transformers`.
fn tokens_of(tokenizer: &Tokenizer, chat: &ChatText) -> Result<TokenRow, BoxError> {
    let encoding = tokenizer.encode(chat.text.as_str(), false)?;
    let mut parts = chat.learned.iter().peekable();
    let is_learned = |(start, end): &(usize, usize)| {
        while parts.next_if(|part| part.end <= *start).is_some() {}
        parts.peek().is_some_and(|part| part.start < *end)
    };
    let learned = encoding.get_offsets().iter().map(is_learned).collect();
    Ok(TokenRow { tokens: encoding.get_ids().to_vec(), learned })
}
