//! How requests are sent, and what answers mean that have no bytes for us.

use crate::data::{
    error::DataError,
    store::{
        remote::{Again, Refused, no},
        roots,
    },
};
use async_trait::async_trait;
use futures_util::StreamExt;
use object_store::{
    ClientConfigKey, ClientOptions,
    client::{HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService},
};
use reqwest::{Client, StatusCode, header, redirect::Policy};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use std::{error::Error, io, time::Duration};

/// How long each wait may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    pub(super) connect: Duration,
    /// For the head of an answer, and for the next bytes.
    pub(super) bytes: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), bytes: Duration::from_secs(30) }
    }
}

/// Makes what sends requests. Nothing is installed for the process.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    tls: ClientConfig,
    waits: Waits,
}

impl Connector {
    /// Trusts the roots of Mozilla's list, or those of the file that `SSL_CERT_FILE` names.
    pub(super) fn new(waits: Waits) -> Result<Self, DataError> {
        let mut trusted = RootCertStore::empty();
        match roots::named()? {
            Some(roots) => _ = trusted.add_parsable_certificates(roots),
            None => trusted.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        }
        let tls = ClientConfig::builder_with_provider(ring::default_provider().into());
        let tls = tls.with_safe_default_protocol_versions().map_err(|error| DataError::Option {
            option: "paths",
            problem: format!("TLS cannot be set up: {error}"),
            advice: "use a build of rustls with TLS 1.2 or 1.3".into(),
        })?;
        Ok(Self { tls: tls.with_root_certificates(trusted).with_no_client_auth(), waits })
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let is_plain = options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let client = Client::builder()
            .user_agent(concat!("burn-pinned/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(self.tls.clone())
            // A signature is for one place.
            .redirect(Policy::none())
            .http1_only()
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .connect_timeout(self.waits.connect)
            .read_timeout(self.waits.bytes)
            .build();
        let client = client.map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })?;
        Ok(HttpClient::new(Service { client, is_plain }))
    }
}

/// Sends requests. What an answer without success means is told here: further up, there are only texts, and these may
/// hold credentials.
#[derive(Debug)]
struct Service {
    client: Client,
    /// Whether requests without TLS are allowed.
    is_plain: bool,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let refused = |refused: Refused| HttpError::new(HttpErrorKind::Unknown, refused);
        if !self.is_plain && request.uri().scheme_str() == Some("http") {
            let problem = "plain HTTP is not allowed: set `AWS_ALLOW_HTTP=true`, or that of `GOOGLE_` or `AZURE_`";
            return Err(refused(no(None, problem)));
        }
        let host = request.uri().host().unwrap_or_default().to_owned();
        let answer = HttpService::call(&self.client, request).await;
        let answer = answer.map_err(|error| refused(failed(&error, &host)))?;
        if answer.status().is_success() { Ok(answer) } else { Err(refused(meaning(answer).await)) }
    }
}

/// What it means that there is no answer.
fn failed(error: &HttpError, host: &str) -> Refused {
    // Each cloud has such a host for the credentials of its machines.
    if host.starts_with("169.254.") || host.starts_with("metadata.") {
        let problem = format!("no credentials are set, and this machine has none of its own ({host} does not answer)");
        return no(None, problem);
    }
    let cause = cause(error);
    let is_no = match cause.downcast_ref::<io::Error>() {
        // A certificate that is not trusted.
        Some(error) => error.kind() == io::ErrorKind::InvalidData,
        None => cause.is::<rustls::Error>(),
    };
    let problem = match error.kind() {
        HttpErrorKind::Timeout => format!("{host} did not answer in time"),
        _ => format!("{host}: {cause}"),
    };
    Refused { status: None, problem, again: if is_no { Again::No } else { Again::Yes } }
}

/// The innermost error.
pub(super) fn cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause
}

/// What an answer without success means. Of its body, only the word for the error is told.
async fn meaning(answer: HttpResponse) -> Refused {
    let (status, header) = (answer.status(), |name: &str| answer.headers().get(name)?.to_str().ok().map(String::from));
    let after = header(header::RETRY_AFTER.as_str()).and_then(|seconds| seconds.parse().ok());
    let refused = Refused::of(status.as_u16(), after.map(Duration::from_secs));
    let code = match header("x-ms-error-code") {
        Some(code) => Some(code),
        None => code(&body(answer).await),
    };
    let code = code.filter(|code| code.len() < 100 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let (problem, again) = match status {
        _ if status.is_redirection() => ("it is in another place: is the region right?".into(), Again::No),
        // S3 says this of a connection that was slow.
        StatusCode::BAD_REQUEST if code.as_deref() == Some("RequestTimeout") => (refused.problem, Again::Yes),
        StatusCode::BAD_REQUEST => ("the store refuses the request".into(), Again::No),
        _ => (refused.problem, refused.again),
    };
    let problem = code.map_or_else(|| problem.clone(), |code| format!("{problem} ({code})"));
    Refused { status: refused.status, problem, again }
}

/// The start of a body, which ends it.
async fn body(answer: HttpResponse) -> Vec<u8> {
    let (mut stream, mut bytes) = (answer.into_body().bytes_stream(), Vec::new());
    while let Some(Ok(more)) = stream.next().await {
        bytes.extend_from_slice(&more);
        if bytes.len() > 1 << 16 {
            break;
        }
    }
    bytes
}

fn code(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let (_, rest) = text.split_once("<Code>")?;
    Some(rest.split_once("</Code>")?.0.trim().into())
}
