//! How requests are sent, and what an answer means that does not have the bytes.

use crate::{
    error::DataError,
    store::{
        remote::{Again, Refused, no},
        tls,
    },
};
use async_trait::async_trait;
use futures_util::StreamExt;
use object_store::{
    ClientConfigKey, ClientOptions,
    client::{HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService},
};
use reqwest::{Client, ClientBuilder, Method, StatusCode, redirect::Policy};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::CertificateDer;
use std::{
    error::Error,
    net::Ipv4Addr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

#[cfg(test)]
mod tests;

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
        Self::trusting(tls::roots()?, waits)
    }

    /// Trusts these roots, or those of Mozilla's list.
    pub(super) fn trusting(roots: Option<Vec<CertificateDer<'static>>>, waits: Waits) -> Result<Self, DataError> {
        let mut trusted = RootCertStore::empty();
        match roots {
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

    fn client(&self, connect: Duration) -> ClientBuilder {
        Client::builder()
            .user_agent(concat!("burn-pinned/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(self.tls.clone())
            // A signature is for one place.
            .redirect(Policy::none())
            .http1_only()
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .connect_timeout(connect)
            .read_timeout(self.waits.bytes)
    }

    /// How long a connection is waited for. For the credentials of a machine the crate asks for less.
    fn connect_wait(&self, options: &ClientOptions) -> Duration {
        let told = options.get_config_value(&ClientConfigKey::ConnectTimeout);
        let told = told.and_then(|time| humantime::parse_duration(&time).ok());
        told.map_or(self.waits.connect, |told| told.min(self.waits.connect))
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.client(self.connect_wait(options)).build();
        let client = client.map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })?;
        Ok(HttpClient::new(Service { client, is_plain: is_plain(options), has_credentials: AtomicBool::new(false) }))
    }
}

/// Whether requests without TLS are allowed. The text may be that of the environment, in any of the ways that the crate takes.
fn is_plain(options: &ClientOptions) -> bool {
    let told = options.get_config_value(&ClientConfigKey::AllowHttp).unwrap_or_default();
    ["1", "true", "on", "yes", "y"].iter().any(|yes| told.eq_ignore_ascii_case(yes))
}

/// Sends requests. What an answer without success means is told here: further up, there are only texts, and these may
/// hold credentials.
#[derive(Debug)]
struct Service {
    client: Client,
    /// Whether requests without TLS are allowed.
    is_plain: bool,
    /// Whether the machine has given its credentials once.
    has_credentials: AtomicBool,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let refused = |refused: Refused| HttpError::new(HttpErrorKind::Unknown, refused);
        // The one request of these hosts that is no GET tells nothing of credentials.
        let is_get = request.method() == Method::GET;
        if !self.is_plain && request.uri().scheme_str() == Some("http") {
            let problem = "plain HTTP is not allowed: set `AWS_ALLOW_HTTP=true`, or that of `GOOGLE_` or `AZURE_`";
            return Err(refused(no(None, problem)));
        }
        let host = request.uri().host().unwrap_or_default().to_owned();
        let why = match HttpService::call(&self.client, request).await {
            Ok(answer) if answer.status().is_success() => {
                if is_get && gives_credentials(&host) {
                    self.has_credentials.store(true, Relaxed);
                }
                return Ok(answer);
            }
            Ok(answer) => meaning(answer).await,
            Err(error) => failed(&error, &host),
        };
        Err(refused(if gives_credentials(&host) { self.without_credentials(&host, why) } else { why }))
    }
}

impl Service {
    /// What it means that a machine does not give its credentials. The status is not one of an object.
    fn without_credentials(&self, host: &str, why: Refused) -> Refused {
        let had = self.has_credentials.load(Relaxed);
        let told = match had {
            true => "the credentials of this machine cannot be renewed",
            false => "no credentials are set, and this machine has none of its own",
        };
        let again = match (why.again, why.status) {
            // What was there comes back.
            (Again::No, _) if had => Again::Yes,
            (_, None) if !had => Again::No,
            (again, _) => again,
        };
        let problem = match why.status {
            Some(status) => format!("{told} ({host} answers with status {status})"),
            None => format!("{told} ({})", why.problem),
        };
        Refused { status: None, problem, again }
    }
}

/// Whether a host gives a machine its credentials: each cloud has such a one.
fn gives_credentials(host: &str) -> bool {
    ["metadata.google.internal", "metadata"].contains(&host)
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_link_local())
}

/// What it means that there is no answer.
fn failed(error: &HttpError, host: &str) -> Refused {
    let problem = match error.kind() {
        HttpErrorKind::Timeout => format!("{host} did not answer in time"),
        _ => format!("{host}: {}", told(error)),
    };
    Refused { status: None, problem, again: if tls::is_of_certificate(error) { Again::No } else { Again::Yes } }
}

/// The innermost error.
pub(super) fn cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause
}

/// The text of the innermost error. One of `reqwest` has the URL in it, which may be signed.
pub(super) fn told(error: &(dyn Error + 'static)) -> String {
    let cause = cause(error);
    if cause.is::<reqwest::Error>() { "the connection broke off".into() } else { cause.to_string() }
}

/// What an answer without success means. Of its body, only the word for the error is told.
async fn meaning(answer: HttpResponse) -> Refused {
    let (status, header) = (answer.status(), |name: &str| answer.headers().get(name)?.to_str().ok());
    let refused = Refused::of(status.as_u16(), header);
    let code = match header("x-ms-error-code") {
        Some(code) => Some(code.into()),
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
