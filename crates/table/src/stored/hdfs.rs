//! A file of HDFS, read through WebHDFS: the interface over HTTP that name nodes and the gateway HttpFS have.

use super::object::{Version, wait};
use bytes::Bytes;
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

/// Where a file is asked for.
#[derive(Debug)]
pub(super) struct Hdfs {
    file: Url,
}

/// Milliseconds before each sending of a request; the last one's failure counts.
const PAUSES: [u64; 5] = [0, 100, 200, 400, 800];
/// No server is waited for longer: until it takes a connection, and until it has answered.
const CONNECTION: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(120);

#[derive(Deserialize)]
struct StatusAnswer {
    #[serde(rename = "FileStatus")]
    status: Status,
}

/// What a name node says of a file. Nobody writes into the middle of one: it grows, or another takes its name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    length: u64,
    modification_time: u64,
    /// A gateway does not say it.
    #[serde(default)]
    file_id: u64,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct RefusalAnswer {
    #[serde(rename = "RemoteException")]
    refusal: Refusal,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

impl Hdfs {
    /// The file `path` of the name node (or gateway) `host`, which is spoken to with TLS or without.
    pub(super) fn new(host: &str, path: &str, tls: bool) -> io::Result<Self> {
        let scheme = if tls { "https" } else { "http" };
        let no_server =
            |why: &str| io::Error::new(ErrorKind::InvalidInput, format!("{host} names no server: {why}"));
        let mut file = Url::parse(&format!("{scheme}://{host}")).map_err(|e| no_server(&e.to_string()))?;
        file.path_segments_mut()
            .map_err(|()| no_server("it has no paths"))?
            .extend(["webhdfs", "v1"])
            .extend(path.split('/'));
        if let Ok(user) = std::env::var("HADOOP_USER_NAME") {
            file.query_pairs_mut().append_pair("user.name", &user);
        }
        Ok(Self { file })
    }

    /// The version that is there now.
    pub(super) fn version(&self) -> io::Result<Version> {
        let answer = self.answer("GETFILESTATUS", &[])?;
        let StatusAnswer { status } = serde_json::from_slice(&answer).map_err(|e| {
            io::Error::new(ErrorKind::InvalidData, format!("its server does not speak WebHDFS: {e}"))
        })?;
        if status.kind != "FILE" {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is a folder: name the files in it"));
        }
        let tag = format!("{} {}", status.file_id, status.modification_time);
        Ok(Version { bytes: status.length, tag: Some(tag) })
    }

    /// The bytes of a range, and the version that is there after they were read. Where that is the one of before, they are of it.
    pub(super) fn range(&self, range: Range<u64>) -> io::Result<(Version, Bytes)> {
        let (offset, length) = (range.start.to_string(), (range.end - range.start).to_string());
        let bytes = self.answer("OPEN", &[("offset", &offset), ("length", &length)])?;
        Ok((self.version()?, bytes))
    }

    /// What a server answers, a data node where the name node sends us on to one. No connection, and a server that is busy or
    /// starts, may pass.
    fn answer(&self, operation: &str, options: &[(&str, &str)]) -> io::Result<Bytes> {
        let mut url = self.file.clone();
        url.query_pairs_mut().append_pair("op", operation).extend_pairs(options);
        wait(async {
            let mut failure = io::Error::from(ErrorKind::NotConnected);
            for pause in PAUSES {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                failure = match client()?.get(url.clone()).send().await {
                    Ok(answer) if answer.status().is_client_error() => return Err(refusal(answer).await),
                    Ok(answer) if answer.status().is_success() => match answer.bytes().await {
                        Ok(bytes) => return Ok(bytes),
                        Err(e) => io::Error::other(e),
                    },
                    Ok(answer) => refusal(answer).await,
                    Err(e) => io::Error::other(e),
                };
            }
            Err(failure)
        })?
    }
}

/// Why a server refuses, in its own words where it has some.
async fn refusal(answer: Response) -> io::Error {
    let status = answer.status();
    let body = answer.bytes().await.unwrap_or_default();
    let words = match serde_json::from_slice::<RefusalAnswer>(&body) {
        Ok(RefusalAnswer { refusal }) => refusal.message,
        Err(_) => format!("its server answers {status}"),
    };
    io::Error::new(if status == 404 { ErrorKind::NotFound } else { ErrorKind::Other }, words)
}

/// One client, so that connections are kept.
fn client() -> io::Result<&'static Client> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    let start =
        || Client::builder().connect_timeout(CONNECTION).timeout(ANSWER).build().map_err(|e| e.to_string());
    CLIENT.get_or_init(start).as_ref().map_err(|why| io::Error::other(why.clone()))
}
