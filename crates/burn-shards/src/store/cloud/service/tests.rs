//! What requests make of settings, and of hosts that give credentials to machines.

use super::*;
use crate::store::{
    cloud::thread::CloudThread,
    server::{Fault, Files, Server},
    stop::Stop,
};
use object_store::client::HttpRequestBody;
use std::sync::{Arc, Mutex};

fn connector() -> Connector {
    let millis = Duration::from_millis;
    let waits = Waits { connect: millis(2000), answer: millis(300), bytes: millis(300), ..Waits::default() };
    Connector::new(waits).unwrap()
}

#[test]
fn settings_are_read_as_the_crate_reads_them() {
    let options = |key, text: &str| ClientOptions::new().with_config(key, text);
    for (text, is) in [("1", true), ("True", true), ("ON", true), ("yes", true), ("y", true), ("0", false), ("", false)]
    {
        assert_eq!(is_plain(&options(ClientConfigKey::AllowHttp, text)), is, "{text}");
    }
    assert!(is_plain(&ClientOptions::new().with_allow_http(true)) && !is_plain(&ClientOptions::new()));
    let wait = |options: &ClientOptions| connector().connect_wait(options);
    // As the crate does for a machine's credentials.
    assert_eq!(wait(&ClientOptions::new().with_connect_timeout(Duration::from_secs(1))), Duration::from_secs(1));
    for (text, millis) in [("500 ms", 500), ("1s", 1000), ("1m 30s", 2000), ("no time", 2000)] {
        assert_eq!(wait(&options(ClientConfigKey::ConnectTimeout, text)), Duration::from_millis(millis), "{text}");
    }
}

#[test]
fn credentials_of_a_machine_that_were_there_are_waited_for() {
    let fault = Arc::new(Mutex::new(Fault::None));
    let next = Arc::clone(&fault);
    let server = Server::new(Files::new(), move |_| next.lock().unwrap().clone());
    let (host, port) = ("metadata.google.internal", server.url("").rsplit_once(':').unwrap().1.to_owned());
    let thread = CloudThread::start(Stop::default()).unwrap();
    let client = |host: &str| {
        let client = connector().client(Duration::from_secs(2)).resolve(host, ([127, 0, 0, 1], 0).into());
        connector().service(client.build().unwrap(), true)
    };
    let ask = |service: &Service, host: &str, method: Method, answer: Fault| {
        *fault.lock().unwrap() = answer;
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        (*request.method_mut(), *request.uri_mut()) = (method, format!("http://{host}:{port}/token").parse().unwrap());
        let answer = thread.wait(service.call(request)).unwrap();
        answer.map(|_| ()).map_err(|error| error.source().unwrap().downcast_ref::<Refusal>().unwrap().clone())
    };
    let answer = |status| Fault::Answer(status, String::new(), "{}".into());
    let service = client(host);
    let none = "no credentials are set, and this machine has none of its own (metadata.google.internal";
    let lost = "the credentials of this machine cannot be renewed (metadata.google.internal";
    for (method, fault, told) in [
        (Method::GET, Fault::Reset, Err((none, Retry::No))),
        (Method::GET, answer(404), Err((none, Retry::No))),
        (Method::GET, answer(503), Err((none, Retry::Yes))),
        (Method::HEAD, answer(200), Ok(())),
        (Method::GET, answer(404), Err((none, Retry::No))),
        (Method::GET, answer(200), Ok(())),
        (Method::GET, Fault::Reset, Err((lost, Retry::Yes))),
        (Method::GET, Fault::Late(Duration::from_secs(1)), Err((lost, Retry::Yes))),
        (Method::GET, answer(404), Err((lost, Retry::Yes))),
    ] {
        let got = ask(&service, host, method, fault.clone());
        match (&got, told) {
            (Ok(()), Ok(())) => {}
            (Err(Refusal { status: None, problem, again }), Err((text, is))) => {
                assert!(problem.starts_with(text) && *again == is, "{fault:?}: {got:?}");
            }
            _ => panic!("{fault:?}: {got:?}"),
        }
    }
    // A server of the user's own is none of these.
    let own = ask(&client("metadata.example.org"), "metadata.example.org", Method::GET, answer(404)).unwrap_err();
    assert_eq!((own.status, own.problem.as_str()), (Some(404), "it is not there"));
    assert!(gives_credentials("169.254.170.2") && !gives_credentials("169.254.example.org"));
}
