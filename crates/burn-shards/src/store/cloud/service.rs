//! How requests are sent, and the meaning of answers without the bytes.

use crate::{
    error::DataError,
    store::{
        lookups,
        proxies::{Proxies, gives_credentials},
        remote::{Refusal, Retry, SMALL_ANSWER, as_stored, no},
        tls,
        waits::Waits,
    },
};
use async_trait::async_trait;
use futures_util::StreamExt;
use object_store::{
    ClientConfigKey, ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    },
};
use reqwest::{
    Client, ClientBuilder, Method, Proxy, StatusCode, Url,
    dns::{Name, Resolve, Resolving},
    redirect::Policy,
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::CertificateDer;
use std::{
    error::Error,
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

#[cfg(test)]
mod tests;

/// The most bytes that are read of the body of an error.
const ERROR_START: u64 = 1 << 16;

/// Makes the HTTP client. Nothing is installed for the whole process.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    tls: ClientConfig,
    waits: Waits,
    proxies: Proxies,
}

impl Connector {
    /// Uses the proxies of the environment, and trusts the authorities of [`tls::roots`].
    pub(super) fn new(waits: Waits) -> Result<Self, DataError> {
        Self::with(waits, Proxies::from_env(), tls::roots()?)
    }

    pub(super) fn with(waits: Waits, proxies: Proxies, roots: Vec<CertificateDer<'static>>) -> Result<Self, DataError> {
        let mut trusted = RootCertStore::empty();
        trusted.add_parsable_certificates(roots);
        let tls = ClientConfig::builder_with_provider(ring::default_provider().into());
        let tls = tls.with_safe_default_protocol_versions().map_err(|error| {
            DataError::option(
                "paths",
                format!("TLS cannot be set up: {error}"),
                "use a build of rustls with TLS 1.2 or 1.3",
            )
        })?;
        Ok(Self { tls: tls.with_root_certificates(trusted).with_no_client_auth(), waits, proxies })
    }

    fn client(&self, connect: Duration) -> ClientBuilder {
        let proxies = self.proxies.clone();
        let proxy = move |to: &Url| {
            let proxy = proxies.through(to.scheme() == "https", to.host_str()?, to.port()).ok()??;
            Url::parse(proxy).ok()
        };
        Client::builder()
            .user_agent(concat!("burn-pinned/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(self.tls.clone())
            .proxy(Proxy::custom(proxy))
            .dns_resolver(CloudResolver)
            // Redirects are not followed, because a signature is for one URL.
            .redirect(Policy::none())
            .http1_only()
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .connect_timeout(connect)
            .read_timeout(self.waits.bytes)
    }

    /// How long to wait for a connection. For the credentials of a machine the crate wants a shorter wait.
    fn connect_wait(&self, options: &ClientOptions) -> Duration {
        let told = options.get_config_value(&ClientConfigKey::ConnectTimeout);
        let told = told.and_then(|time| humantime::parse_duration(&time).ok());
        told.map_or(self.waits.connect, |told| told.min(self.waits.connect))
    }

    fn service(&self, client: Client, is_plain: bool) -> Service {
        let (waits, proxies) = (self.waits, self.proxies.clone());
        Service { client, is_plain, has_credentials: AtomicBool::new(false), waits, proxies }
    }
}

/// Finds the addresses of hosts.
struct CloudResolver;

impl Resolve for CloudResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (tell, told) = oneshot::channel();
        lookups::look_up(name.as_str(), move |found| _ = tell.send(found));
        Box::pin(async {
            let all = told.await??;
            Ok(Box::new(all.into_iter().map(|address| SocketAddr::new(address, 0))) as _)
        })
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.client(self.connect_wait(options)).build();
        let client = client.map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })?;
        Ok(HttpClient::new(self.service(client, is_plain(options))))
    }
}

/// Whether requests without TLS are allowed. The setting may be a text from the environment, in any form that the crate accepts.
fn is_plain(options: &ClientOptions) -> bool {
    let told = options.get_config_value(&ClientConfigKey::AllowHttp).unwrap_or_default();
    ["1", "true", "on", "yes", "y"].iter().any(|yes| told.eq_ignore_ascii_case(yes))
}

/// Sends requests, and also decides what an unsuccessful answer means. Its callers would get only the texts of errors, which may contain
/// credentials.
#[derive(Debug)]
struct Service {
    client: Client,
    /// Whether requests without TLS are allowed.
    is_plain: bool,
    /// Whether the machine has given credentials before.
    has_credentials: AtomicBool,
    waits: Waits,
    proxies: Proxies,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let refused = |refused: Refusal| HttpError::new(HttpErrorKind::Unknown, refused);
        // A host that gives credentials also gets one request that is not a GET, whose answer has no credentials.
        let is_get = request.method() == Method::GET;
        if !self.is_plain && request.uri().scheme_str() == Some("http") {
            let problem = "plain HTTP is not allowed: set `AWS_ALLOW_HTTP=true`, or that of `GOOGLE_` or `AZURE_`";
            return Err(refused(no(None, problem)));
        }
        let (host, port) = (request.uri().host().unwrap_or_default().to_owned(), request.uri().port_u16());
        let is_tls = request.uri().scheme_str() == Some("https");
        self.proxies.through(is_tls, &host, port).map_err(refused)?;
        let is_part = request.headers().contains_key(reqwest::header::RANGE);
        let why = match HttpService::call(&self.client, request).await {
            Ok(answer) if answer.status().is_success() => {
                as_stored(answer.status().as_u16(), answer.headers()).map_err(refused)?;
                if is_get && gives_credentials(&host) {
                    self.has_credentials.store(true, Relaxed);
                }
                return if is_part { Ok(answer) } else { self.read_whole(answer).await.map_err(refused) };
            }
            Ok(answer) => self.meaning(answer).await,
            Err(error) => failed(&error, &host),
        };
        Err(refused(if gives_credentials(&host) { self.without_credentials(&host, why) } else { why }))
    }
}

impl Service {
    /// Reads all of a small answer: a list, or credentials.
    async fn read_whole(&self, answer: HttpResponse) -> Result<HttpResponse, Refusal> {
        let (head, body) = answer.into_parts();
        let (bytes, ended) = read(body, SMALL_ANSWER, self.waits).await;
        ended?;
        Ok(HttpResponse::from_parts(head, bytes.into()))
    }

    /// What an answer without success means. Of the answer's body, only the store's error code is shown.
    async fn meaning(&self, answer: HttpResponse) -> Refusal {
        let (status, header) = (answer.status(), |name: &str| answer.headers().get(name)?.to_str().ok());
        let refused = Refusal::of_answer(status.as_u16(), header);
        let code = match header("x-ms-error-code") {
            Some(code) => Some(code.into()),
            None => code(&read(answer.into_body(), ERROR_START, self.waits).await.0),
        };
        let code = code.filter(|code| code.len() < 100 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let (problem, again) = match status {
            _ if status.is_redirection() => ("it is in another place: is the region right?".into(), Retry::No),
            // S3 answers so if a connection was slow.
            StatusCode::BAD_REQUEST if code.as_deref() == Some("RequestTimeout") => (refused.problem, Retry::Yes),
            StatusCode::BAD_REQUEST => ("the store refuses the request".into(), Retry::No),
            _ => (refused.problem, refused.again),
        };
        let problem = code.map_or_else(|| problem.clone(), |code| format!("{problem} ({code})"));
        Refusal { status: refused.status, problem, again }
    }

    /// The meaning of a failed request for the machine's credentials. The status is from the host of the credentials, so it says nothing
    /// about an object.
    fn without_credentials(&self, host: &str, why: Refusal) -> Refusal {
        let had = self.has_credentials.load(Relaxed);
        let told = match had {
            true => "the credentials of this machine cannot be renewed",
            false => "no credentials are set, and this machine has none of its own",
        };
        let again = match (why.again, why.status) {
            // A machine that gave credentials before is expected to give them again.
            (Retry::No, _) if had => Retry::Yes,
            (_, None) if !had => Retry::No,
            (again, _) => again,
        };
        let problem = match why.status {
            Some(status) => format!("{told} ({host} answers with status {status})"),
            None => format!("{told} ({})", why.problem),
        };
        Refusal { status: None, problem, again }
    }
}

/// What a request without an answer means.
fn failed(error: &HttpError, host: &str) -> Refusal {
    let problem = match error.kind() {
        HttpErrorKind::Timeout => format!("{host} did not answer in time"),
        _ => format!("{host}: {}", told(error)),
    };
    Refusal { status: None, problem, again: if tls::is_of_certificate(error) { Retry::No } else { Retry::Yes } }
}

/// The innermost error.
pub(super) fn cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause
}

/// The text of the innermost error. An error of `reqwest` has the URL in it, which may be signed.
pub(super) fn told(error: &(dyn Error + 'static)) -> String {
    let cause = cause(error);
    if cause.is::<reqwest::Error>() { "the connection broke off".into() } else { cause.to_string() }
}

/// Reads a body up to a limit, and says how it ended.
async fn read(body: HttpResponseBody, most: u64, waits: Waits) -> (Vec<u8>, Result<(), Refusal>) {
    let (mut stream, mut bytes, mut waited) = (body.bytes_stream(), Vec::new(), Duration::ZERO);
    let broken = |problem| Err(Refusal { status: None, problem, again: Retry::Yes });
    loop {
        let since = Instant::now();
        let more = match stream.next().await {
            Some(Ok(more)) => more,
            Some(Err(error)) => return (bytes, broken(told(&error))),
            None => return (bytes, Ok(())),
        };
        bytes.extend_from_slice(&more);
        waited += since.elapsed();
        if let Err(error) = waits.check(waited, bytes.len() as u64) {
            return (bytes, broken(error.to_string()));
        }
        if bytes.len() as u64 > most {
            return (bytes, Err(no(None, "the answer is too long")));
        }
    }
}

fn code(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let (_, rest) = text.split_once("<Code>")?;
    Some(rest.split_once("</Code>")?.0.trim().into())
}
